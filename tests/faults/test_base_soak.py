"""Tests that a short soak of a Base chain passes, and that its report names failures."""

import json
import subprocess
import sys
from typing import Any

import pytest

from fastevm.bench.options import ROOT
from tests.faults.base_soak import FOLLOWERS, KILLS, LINK_FAULTS, failures
from tests.max_wait import MAX_WAIT

GOOD: dict[str, Any] = {
    "complaints": [],
    "never_in_a_block": 0,
    "different_blocks": dict.fromkeys(FOLLOWERS, 0),
    "different_receipts": dict.fromkeys(FOLLOWERS, 0),
    "different_balances": 0,
    "age": {name: {"wrong": []} for name in FOLLOWERS},
    "heads_lost": 0,
    "promises_broken": 0,
    "log_errors": {"full": []},
    "growth": {"full": {"wrong": []}},
}


def test_followers_of_base_lose_nothing_when_nodes_are_killed_and_links_cut() -> None:
    options = ("--seconds", "1", "--pause", "0", "--kill-every", "1000")
    fast = ("--fault-seconds", "0.5", "--max-age", "500ms", "--rate", "10")
    busy = ("--slack", "60")  # seconds of tolerance, because other processes may load the machine
    run = subprocess.run(
        [sys.executable, "-m", "tests.faults.base_soak", *options, *fast, *busy],
        cwd=ROOT, capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert run.stdout, run.stderr
    found = json.loads(run.stdout)
    assert (run.returncode, found["wrong"]) == (0, [])
    assert set(found["faults"]) == {*LINK_FAULTS, *KILLS}
    assert found["transactions"] > 20
    assert set(found["kinds"]) >= {"transfer with memo", "payment", "policy", "creation", "mint"}
    assert found["blocks"] > 20
    assert all(found["age"][name]["looks"] for name in FOLLOWERS)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"complaints": ["it is late"]}, ["it is late"]),
        ({"never_in_a_block": 2}, ["2 accepted transactions are in no block"]),
        ({"different_blocks": {"full": 0, "partial": 3}}, ["partial: 3 blocks differ"]),
        ({"different_receipts": {"full": 1, "partial": 0}}, ["full: 1 receipts differ"]),
        ({"different_balances": 1}, ["1 token balances differ"]),
        ({"heads_lost": 4}, ["4 blocks that were served are gone"]),
        ({"promises_broken": 5}, ["5 receipts that were sent are no longer true"]),
        (
            {"age": {"full": {"wrong": ["it was old"]}, "partial": {"wrong": []}}},
            ["it was old"],
        ),
        ({"log_errors": {"full": ["a line"]}}, ["full: a line"]),
        ({"growth": {"full": {"wrong": ["it grew"]}}}, ["full: it grew"]),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], words: list[str]) -> None:
    assert failures(GOOD | changes) == words
