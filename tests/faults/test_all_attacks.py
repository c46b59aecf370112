"""Tests that a short run of all attacks loses no transaction, and that the report is right."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from fastevm.bench.options import ROOT
from tests.faults.all_attacks import AIMS, aims, failures
from tests.max_wait import MAX_WAIT

GOOD: dict[str, Any] = {
    "wrong_blocks": [],
    "never_in_a_block": 0,
    "without_outcome": 0,
    "unanswered": 0,
}


@pytest.mark.skipif(
    not os.environ.get("FASTEVM_TEST_ATTACKS"),
    reason="takes minutes on a busy machine: set FASTEVM_TEST_ATTACKS=1",
)
@pytest.mark.parametrize("target", ["node", "op"])
def test_a_few_seconds_of_all_attacks_lose_nothing(target: str) -> None:
    options = ("--seconds", "3", "--connections", "4", "--target", target)
    run = subprocess.run(
        [sys.executable, "-m", "tests.faults.all_attacks", *options],
        cwd=ROOT, capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert run.stdout, run.stderr[-2_000:]
    found = json.loads(run.stdout)
    assert (run.returncode, found["wrong"]) == (0, [])
    assert found["transfers"] > 5
    assert found["accepted"]
    assert found["blocks"] > 3
    assert found["attacks"]
    assert found["memory"]["max"] < 600
    assert [row["name"] for row in found["aims"]] == [name for name, *_ in AIMS]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"wrong_blocks": ["block 3: another hash"]}, ["wrong: block 3: another hash"]),
        ({"never_in_a_block": 2}, ["2 honest transfers are in no block"]),
        ({"without_outcome": 1}, ["1 accepted transactions vanished without a reason"]),
        ({"unanswered": 4}, ["4 short questions had no result"]),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], words: list[str]) -> None:
    assert failures(GOOD | changes) == words


def test_a_missed_aim_is_reported() -> None:
    found = {group: {figure: limit + 1} for _, group, figure, limit in AIMS}
    assert not any(row["met"] for row in aims(found))
