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
