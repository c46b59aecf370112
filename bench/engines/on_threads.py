"""Times work on one thread and on several, relative to hashing at the same time.

On a shared machine, another process may use a processor for a moment, and two processors may share
one core. So independent data is hashed before and after each pair of runs, on one thread and on
all. A pair counts only if hashing gained nearly as much as there are threads. The results are
medians.

Waking a thread takes a fixed time, which matters more for short work. So the hashing takes as long
as the work on one thread.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple

HASHED: Final = bytes(1 << 19)  # bytes per thread: one or two milliseconds
LEAST_HASHED: Final = 1 << 12  # bytes per thread, for the shortest work
TRIALS: Final = 9  # runs of the work and of hashing, to find their durations
LEAST_GAIN: Final = 0.85  # lowest accepted speed-up of hashing, per thread
MOST_GAIN: Final = 1.1  # a higher gain means that the run on one thread was interrupted


class Times(NamedTuple):
    """The times of one run on one thread and one run on several threads.

    ``alone`` and ``shared``: wall seconds on one thread and on several. ``gain``: ``alone`` divided
    by ``shared``. ``processor``: CPU time on several threads divided by CPU time on one.
    ``hashing``: the gain of hashing. ``share``: ``gain`` divided by ``hashing``.
    """

    alone: float
    shared: float
    gain: float
    processor: float
    hashing: float
    share: float


class Medians(NamedTuple):
    """Medians of the valid pairs of runs, or of all pairs if none is valid.

    ``pairs``: the number of valid pairs.
    """

    times: Times
    pairs: int


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Returns wall and CPU seconds."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def _hash(data: bytes) -> None:
    hashlib.sha256(data).digest()


def _hash_on(pool: ThreadPoolExecutor, threads: int, data: bytes) -> None:
    others = [pool.submit(_hash, data) for _ in range(threads - 1)]
    _hash(data)
    for other in others:
        other.result()


def _hash_in_turn(threads: int, data: bytes) -> None:
    for _ in range(threads):
        _hash(data)


def hashing_gain(pool: ThreadPoolExecutor, threads: int, data: bytes = HASHED) -> float:
    """Returns the speed-up of hashing ``data`` on several threads."""
    alone, _ = timed(partial(_hash_in_turn, threads, data))
    shared, _ = timed(partial(_hash_on, pool, threads, data))
    return alone / shared


def as_long_as(work: Callable[[], object], threads: int) -> bytes:
    """Returns data to hash. Hashing takes as long as the work, within the bounds."""
    wanted, hashing = (
        statistics.median(timed(item)[0] for _ in range(TRIALS))
        for item in (work, partial(_hash_in_turn, threads, HASHED))
    )
    return HASHED[: max(LEAST_HASHED, int(len(HASHED) * min(1.0, wanted / hashing)))]


def compared(run: Callable[[int], object], threads: int, rounds: int) -> Medians:
    """Times ``run`` alternately with one thread and with several."""
    pairs: list[Times] = []
    good: list[Times] = []
    data = as_long_as(partial(run, 1), threads)
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(rounds):
            before, beside = hashing_gain(pool, threads), hashing_gain(pool, threads, data)
            alone, alone_cpu = timed(partial(run, 1))
            shared, shared_cpu = timed(partial(run, threads))
            hashing = (beside + hashing_gain(pool, threads, data)) / 2
            gains = (before, hashing_gain(pool, threads))
            gain = alone / shared
            pairs.append(
                Times(alone, shared, gain, shared_cpu / alone_cpu, hashing, gain / hashing)
            )
            if min(gains) >= LEAST_GAIN * threads and max(gains) <= MOST_GAIN * threads:
                good.append(pairs[-1])
    medians = [statistics.median(column) for column in zip(*(good or pairs), strict=True)]
    return Medians(Times(*medians), len(good))


HEAD: Final = "   ms, 1   ms, N   gain  cpu x  hash  share  pairs"


def row(medians: Medians) -> str:
    """Formats the medians as a row under ``HEAD``."""
    times = medians.times
    return (
        f"{times.alone * 1e3:8.2f} {times.shared * 1e3:7.2f} {times.gain:6.2f}"
        f" {times.processor:6.2f} {times.hashing:5.2f} {times.share:6.2f} {medians.pairs:6}"
    )
