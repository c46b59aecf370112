"""Tests that a short soak passes, and that its report names failures."""

import json
import subprocess
import sys
from typing import Any

import pytest

from fastevm.bench.options import ROOT
from tests.faults.soak import SIGNS, failures
from tests.max_wait import MAX_WAIT

GOOD: dict[str, Any] = {
    "different_blocks": [],
    "never_in_a_block": 0,
    "faults": {"drop": {"made": 2, "shown": 2}},
    "complaints": [],
    "wrong_reads": [],
    "balance": {"balance": 7, "least": 7, "most": 8},
    "attacks_not_ended": {},
    "growth": {"builder": {"wrong": []}},
}


def test_both_ends_agree_after_a_few_seconds_of_faults() -> None:
    options = ("--seconds", "4", "--pause", "0", "--kill-every", "2", "--rate", "20")
    fast = ("--block-time", "500ms", "--slice-interval", "50")
    run = subprocess.run(
        [sys.executable, "-m", "tests.faults.soak", *options, *fast],
        cwd=ROOT, capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert run.stdout, run.stderr
    found = json.loads(run.stdout)
    assert (run.returncode, found["wrong"]) == (0, [])
    assert set(found["faults"]) >= {kind for kind in SIGNS if not kind.startswith("kill")}
    assert found["transactions"] > 20
    assert found["blocks"] > 3
    assert found["logs"] > 5
    assert len(found["attacks"]) >= 10
    assert found["reads"]["compared"] > 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"different_blocks": [3, 4]}, ["2 blocks differ"]),
        ({"never_in_a_block": 1}, ["1 accepted transactions are in no block"]),
        (
            {"faults": {"drop": {"made": 2, "shown": 1}}},
            ["drop: 2 made, 1 seen in the metrics"],
        ),
        ({"complaints": ["it is late"]}, ["it is late"]),
        ({"wrong_reads": ["block 3"]}, ["the answers differ: block 3"]),
        (
            {"balance": {"balance": 9, "least": 7, "most": 8}},
            ["the receiver has 9 wei, not 7 to 8"],
        ),
        ({"attacks_not_ended": {"half a head": 2}}, ["half a head: 2 connections were not ended"]),
        ({"growth": {"builder": {"wrong": ["it grew"]}}}, ["builder: it grew"]),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], words: list[str]) -> None:
    assert failures(GOOD | changes) == words
