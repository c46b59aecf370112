"""Work on several threads beside one: ratios of runs in turn, beside hashing."""

import time

from fastevm.bench.engines import on_threads


def test_a_run_that_needs_half_the_time_gains_two() -> None:
    medians = on_threads.compared(lambda threads: time.sleep(0.02 / threads), 2, 3)
    times = medians.times
    assert 1.3 < times.gain < 3
    assert times.alone > times.shared > 0.009
    assert 0 <= medians.pairs <= 3
    assert len(on_threads.row(medians)) == len(on_threads.HEAD)


def test_hashing_takes_as_long_as_the_work_where_that_is_short() -> None:
    def work() -> None:
        time.sleep(0.0005)

    short = on_threads.as_long_as(work, 2)
    assert on_threads.LEAST_HASHED <= len(short) < len(on_threads.HASHED)
    assert on_threads.as_long_as(lambda: time.sleep(0.05), 2) == on_threads.HASHED
