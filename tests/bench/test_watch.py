"""Tests the benchmark of watched calls."""

import pytest

from fastevm.bench.watch import KINDS, Slices, fill, freshness, genesis, growth, question
from fastevm.simulate import Watch, simulate_many, view_of


def test_the_bundles_do_what_their_kind_says() -> None:
    results = list(simulate_many(genesis(3), [question(at) for at in range(2 * KINDS)]))
    # Only the liquidation fails: the contract refuses it while the price is high enough.
    assert [result.success for result in results] == [True, True, False, True] * 2
    assert all(len(result.calls[0].logs) == 1 for result in results if result.success)


def test_a_slice_touches_about_as_many_as_it_says() -> None:
    count = 800
    layer = genesis(count // KINDS)
    view = view_of(layer, number=100, timestamp=1_700_000_000)
    watch = Watch(view)
    fill(watch, count)
    slices = Slices(layer, count, 100)
    for _ in range(3):
        assert watch.advance(view_of(slices.next(), number=100, timestamp=1_700_000_000)).ran >= 80


def test_figures_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    freshness(400, 3, 1)
    growth(1_000, 2, 1)
    printed = capsys.readouterr().out
    assert "1% touched" in printed
    assert "1,000 questions" in printed
