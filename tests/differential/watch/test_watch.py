"""Tests that the results of a `Watch` equal the results of full executions."""

import pytest

from .comparison import Comparison


@pytest.mark.parametrize("threads", [1, 3])
def test_answers_are_those_of_full_runs(threads: int) -> None:
    kept = 0
    for seed in range(12):
        chain = Comparison(seed + 1_000 * threads, threads=threads)
        assert chain.differing() == []
        assert chain.compared > 100
        kept += chain.watch.counters.kept
    assert kept > 100
