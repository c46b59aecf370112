"""Controls how the process returns freed memory to the system."""

import os
import threading
from pathlib import Path
from typing import Final

from fastevm.core.primitives.native.symbols import (
    has_malloc_trim,
    set_malloc_option,
    trim_malloc,
)

MEGABYTE: Final = 1024 * 1024
KEPT: Final = 64 * MEGABYTE  # bytes of freed memory that each malloc arena keeps
LOOK_SECONDS: Final = 5.0  # seconds between checks of the resident size
# Growth in bytes since memory was last returned, from which on it is returned immediately. Without
# this, clients that request large answers all the time grow the node by hundreds of megabytes.
GROWN_FAST: Final = 64 * MEGABYTE
LOOKS: Final = 12  # checks (one minute) after which growth by `GROWN` is enough
GROWN: Final = 16 * MEGABYTE  # growth in bytes above the smallest size seen
RESIDENT: Final = Path("/proc/self/statm")

# Options of mallopt(3) in glibc.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3


def keep_freed_memory() -> None:
    """Let malloc reuse freed memory up to `KEPT` bytes. Affects only glibc's malloc.

    An answer of megabytes consists of a few large allocations. By default, glibc requests each from
    the system again, and the system zeroes every page. That took two thirds of the time of an
    answer with 4,000 logs.
    """
    set_malloc_option(_MMAP_THRESHOLD, KEPT)
    set_malloc_option(_TRIM_THRESHOLD, KEPT)


def give_back_freed_memory(seconds: float = LOOK_SECONDS) -> None:
    """Start a thread that checks every ``seconds`` and returns freed memory if the process grew.

    malloc does not return freed memory below an allocation in use: successive large requests grew a
    node from 50 to 200 MiB, of which 27 MiB were in use. The thread returns all free pages in about
    10 ms. Does nothing if the system has no ``malloc_trim``.
    """
    if has_malloc_trim() and RESIDENT.exists():
        name = "fastevm-memory"
        threading.Thread(target=_give_back, args=(seconds,), name=name, daemon=True).start()


def _give_back(seconds: float) -> None:
    pause = threading.Event()
    least = base = resident()  # of all times; since the last return of memory
    looks = 0
    while not pause.wait(seconds):
        now, looks = resident(), looks + 1
        if now - base > GROWN_FAST or (looks >= LOOKS and now - least > GROWN):
            trim_malloc()
            base, looks = resident(), 0
        least, base = min(least, now), min(base, now)


def resident() -> int:
    """Return the resident bytes of this process. Raises OSError if they are not available."""
    return int(RESIDENT.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
