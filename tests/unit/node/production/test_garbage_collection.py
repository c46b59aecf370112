"""Tests that full collections run only when the builder asks, and skip frozen objects."""

import gc
from collections.abc import Iterator

import pytest

from fastevm.node.production import garbage_collection as collector
from fastevm.node.production.garbage_collection import Collector

LONG = 10.0  # seconds until the next slice: enough for any collection


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Provides a started collector, which has frozen all existing objects."""
    monkeypatch.setattr(collector, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(collector, "PERIOD_SECONDS", 0.0)
    running = Collector()
    running.start()
    running.collect(LONG)
    yield running
    running.stop()


def full_collections() -> int:
    return int(gc.get_stats()[2]["collections"])


def test_the_start_collects_nothing_and_stops_full_collections() -> None:
    before, thresholds = full_collections(), gc.get_threshold()
    own = Collector()
    own.start()
    assert gc.get_threshold() == collector.YOUNG_THRESHOLDS
    own.collect(LONG)  # a collection is not due yet
    assert full_collections() == before
    own.stop()
    assert gc.get_threshold() == thresholds


def test_what_the_start_leaves_is_set_apart_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "SETTLE_SECONDS", 0.0)
    before = full_collections()
    own = Collector()
    own.start()
    own.collect(LONG)
    assert gc.get_freeze_count() > 1_000
    own.collect(LONG)  # the next collection is not due yet
    assert full_collections() == before
    own.stop()
    assert gc.get_freeze_count() == 0


def test_garbage_that_comes_later_is_collected(running: Collector) -> None:
    before = full_collections()
    running.collect(LONG)
    assert full_collections() == before + 1


def test_nothing_is_collected_where_it_would_not_fit(running: Collector) -> None:
    before = full_collections()
    running.last_seconds = 0.1
    running.collect(0.15)
    assert full_collections() == before
    running.collect(0.25)
    assert full_collections() == before + 1
