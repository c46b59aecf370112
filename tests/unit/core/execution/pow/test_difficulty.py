"""Tests all official difficulty vectors, and cases that they do not cover."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastevm.conformance.fields import number_of
from fastevm.conformance.sources import test_files as archive_files
from fastevm.core.execution.pow.difficulty import next_difficulty
from fastevm.core.spec.schedule import schedule_for
from tests.shared_data import SHARED

ARCHIVE = SHARED / "fixtures" / "difficulty_tests.tar.zst"
NO_OMMERS = 0x1DCC4DE8DEC75D7AAB85B567B6CCD41AD312451B948A7413F0A142FD40D49347
FORK_OF_FOLDER = {"dfEIP2384": "MuirGlacier"}


def vectors() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, content in archive_files([ARCHIVE]):
        for forks in msgspec.json.decode(content).values():
            for fork, cases in forks.items():
                if fork == "_info":
                    continue
                fork = FORK_OF_FOLDER.get(Path(name).parent.name, fork)
                yield from ((fork, case) for key, case in cases.items() if key != "_info")


def found(fork: str, case: Mapping[str, Any]) -> int:
    return next_difficulty(
        schedule_for(fork),
        number=number_of(case["currentBlockNumber"]),
        timestamp=number_of(case["currentTimestamp"]),
        parent_timestamp=number_of(case["parentTimestamp"]),
        parent_difficulty=number_of(case["parentDifficulty"]),
        parent_has_ommers=number_of(case["parentUncles"]) not in (0, NO_OMMERS),
    )


def test_all_official_vectors_hold():
    if not ARCHIVE.is_file():
        pytest.skip("the shared test data are not there")
    wrong = []
    count = 0
    for fork, case in vectors():
        count += 1
        if found(fork, case) != number_of(case["currentDifficulty"]):
            wrong.append((fork, case))
    assert not wrong
    assert count > 11_000


def test_proof_of_stake_has_no_difficulty():
    assert (
        next_difficulty(
            schedule_for("Paris"),
            number=1,
            timestamp=12,
            parent_timestamp=0,
            parent_difficulty=1 << 40,
            parent_has_ommers=True,
        )
        == 0
    )


def test_the_difficulty_never_falls_below_its_least():
    assert (
        next_difficulty(
            schedule_for("London"),
            number=1,
            timestamp=10_000,
            parent_timestamp=0,
            parent_difficulty=0x20000,
            parent_has_ommers=False,
        )
        == 0x20000
    )
