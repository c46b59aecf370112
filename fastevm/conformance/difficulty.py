"""Runs difficulty tests: computes the difficulty from a parent, a timestamp and a fork's rules."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, Final

from fastevm.conformance.fields import number_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.core.execution.pow.difficulty import next_difficulty
from fastevm.core.execution.types import EMPTY_LIST_HASH
from fastevm.core.spec.forks import fork_named
from fastevm.core.spec.schedule import ForkSchedule, schedule_for

NO_OMMERS: Final = int.from_bytes(EMPTY_LIST_HASH, "big")

OLD_NAMES: Final[Mapping[str, str]] = {"EIP2384": "MuirGlacier"}
"""The forks by the names that files from before 2021 use."""


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each vector of each fork of the file.

    Files from before 2021 contain only vectors. The name of such a file has the fork
    (``difficultyHomestead``).
    """
    if is_vector(next(iter(content.values()), None)):
        stem = PurePath(name).stem.removeprefix("difficulty").partition("_")[0]
        content = {name: {OLD_NAMES.get(stem, stem): content}}
    for test in content.values():
        for fork, vectors in test.items():
            if fork != "_info":
                for title, vector in vectors.items():
                    yield f"{fork}-{title}", fork, partial(run, schedule_named(fork), vector)


def is_vector(test: Any) -> bool:
    """Returns whether this is a vector: a parent with the difficulty of its child."""
    return isinstance(test, Mapping) and "currentDifficulty" in test


def schedule_named(fork: str) -> ForkSchedule:
    """Returns the schedule of a fork."""
    return schedule_for(fork_named(fork))


def run(schedule: ForkSchedule, vector: Mapping[str, Any]) -> Mismatch | None:
    """Checks a vector. ``parentUncles`` is either a flag or the hash of the parent's ommers."""
    uncles = number_of(vector.get("parentUncles", "0x0"))
    found = next_difficulty(
        schedule,
        number=number_of(vector["currentBlockNumber"]),
        timestamp=number_of(vector["currentTimestamp"]),
        parent_timestamp=number_of(vector["parentTimestamp"]),
        parent_difficulty=number_of(vector["parentDifficulty"]),
        parent_has_ommers=uncles not in (0, NO_OMMERS),
    )
    expected = number_of(vector["currentDifficulty"])
    return None if found == expected else Mismatch(f"difficulty {expected:#x}", f"{found:#x}")
