"""Measures medians of thread CPU time, and wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def seconds_of(run: Callable[[], object], *, spend: float = 0.05, rounds: int = 5) -> float:
    """Returns the median thread CPU seconds of a run. Each round takes ``spend`` seconds."""
    start = time.thread_time_ns()
    run()
    once = max((time.thread_time_ns() - start) / 1e9, 1e-7)
    runs = range(max(1, int(spend / rounds / once)))
    found = []
    for _ in range(rounds):
        start = time.thread_time_ns()
        for _ in runs:
            run()
        found.append((time.thread_time_ns() - start) / 1e9 / len(runs))
    return statistics.median(found)


def wall_seconds(run: Callable[[], object]) -> float:
    """Returns the wall seconds of one run, for work on several threads."""
    start = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - start) / 1e9


def cpu_seconds(run: Callable[[], object]) -> float:
    """Returns the thread CPU seconds of one run."""
    start = time.thread_time_ns()
    run()
    return (time.thread_time_ns() - start) / 1e9
