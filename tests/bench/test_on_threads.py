"""Tests the ratios between alternating runs on one and on several threads, with a fake clock."""

from types import SimpleNamespace

import pytest

from fastevm.bench.engines import on_threads

BYTES_PER_SECOND = on_threads.LEAST_HASHED / 0.0001


class Clock:
    """A fake clock that work advances.

    Hashing takes a time per byte, and less on several threads.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, hashing_gain: float) -> None:
        self.now = 0.0
        read = SimpleNamespace(perf_counter=lambda: self.now, process_time=lambda: self.now)
        monkeypatch.setattr(on_threads, "time", read)

        def in_turn(threads: int, data: bytes) -> None:
            self.pass_(threads * len(data) / BYTES_PER_SECOND)

        def on_pool(_: object, threads: int, data: bytes) -> None:
            self.pass_(threads * len(data) / BYTES_PER_SECOND / hashing_gain)

        monkeypatch.setattr(on_threads, "_hash_in_turn", in_turn)
        monkeypatch.setattr(on_threads, "_hash_on", on_pool)

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def test_a_run_that_needs_half_the_time_gains_two(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, hashing_gain=2.0)
    medians = on_threads.compared(lambda threads: clock.pass_(0.02 / threads), 2, 3)
    assert medians.times == pytest.approx((0.02, 0.01, 2.0, 0.5, 2.0, 1.0))
    assert medians.pairs == 3
    assert len(on_threads.row(medians)) == len(on_threads.HEAD)


def test_pairs_do_not_count_while_others_use_the_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, hashing_gain=1.2)
    medians = on_threads.compared(lambda threads: clock.pass_(0.02 / threads), 2, 3)
    assert medians.pairs == 0
    assert medians.times.share == pytest.approx(2 / 1.2)


@pytest.mark.parametrize(
    ("seconds", "size"),
    [
        (0.0001, on_threads.LEAST_HASHED),
        (0.0004, 2 * on_threads.LEAST_HASHED),
        (1000.0, len(on_threads.HASHED)),
    ],
)
def test_hashing_takes_as_long_as_the_work(
    monkeypatch: pytest.MonkeyPatch, seconds: float, size: int
) -> None:
    clock = Clock(monkeypatch, hashing_gain=2.0)
    assert len(on_threads.as_long_as(lambda: clock.pass_(seconds), 2)) == pytest.approx(size, abs=1)


def test_real_hashing_runs_on_all_threads() -> None:
    with on_threads.ThreadPoolExecutor(2) as pool:
        assert on_threads.hashing_gain(pool, 2, bytes(64)) > 0
