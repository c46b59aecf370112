"""Tests that parallel execution gives the same receipts, gas, logs and root as serial execution."""

import pytest

from fastevm.core.execution.parallel.parallel import counts

from .blocks import Maker, differing

BLOCKS = 24


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_random_blocks_are_those_of_one_thread(threads: int) -> None:
    before = counts()
    first = 1_000 * threads
    wrong = [s for s in range(first, first + BLOCKS) if differing(s, lambda _: threads)]
    assert wrong == []
    ran = counts()
    assert ran["ran"] > before["ran"]


def test_the_random_blocks_meet_what_they_are_made_for() -> None:
    results = [Maker(seed).block().result(2) for seed in range(60)]
    refused = sum("refused" in result for result in results)
    receipts = [r for result in results if "receipts" in result for r in result["receipts"]]
    assert 0 < refused < len(results) // 2
    assert any(r.status == 0 for r in receipts)
    assert any(r.logs for r in receipts)
    assert any(r.contract_address for r in receipts)
