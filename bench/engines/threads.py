"""Measures several threads, each with its own machine. A running machine releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from threading import Thread

from fastevm.bench.engines.clock import wall_seconds
from fastevm.bench.programs.loops import GUARDED, Program, word

RUNS = 20
LOOPS = 40_000


def spin(call: Callable[[], object], runs: int) -> None:
    """Calls the function ``runs`` times."""
    for _ in range(runs):
        call()


def measure() -> list[dict[str, float]]:
    """Returns a row for each number of threads: runs per second, and speed-up over one thread."""
    model = next(program for program in GUARDED if program.name == "arithmetic")
    found: list[dict[str, float]] = []
    for count in range(1, (os.cpu_count() or 1) + 1):
        calls = [Program("spin", model.code, word(LOOPS)).call() for _ in range(count)]
        spent = min(wall_seconds(partial(run_all, calls)) for _ in range(3))
        rate = count * RUNS / spent
        found.append({"threads": count, "runs_per_second": round(rate, 1)})
    for row in found:
        row["speedup"] = round(row["runs_per_second"] / found[0]["runs_per_second"], 3)
    return found


def run_all(calls: Sequence[Callable[[], object]]) -> None:
    """Runs all calls at the same time, each on a thread."""
    threads = [Thread(target=spin, args=(call, RUNS)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
