"""Garbage collection at moments that do not matter: right after a slice.

A full collection stops every thread for as long as it takes to look at all objects: measured
100 ms in a node that has just started, which would make slices late at random moments.
"""

import gc
import time

YOUNG_THRESHOLDS = (10_000, 10, 1_000_000)  # the last: never a full collection by itself
PERIOD_SECONDS = 30.0
LONG_SECONDS = 0.04  # a full collection that takes longer leaves its survivors out of the next


class Collector:
    """Takes over full collections between ``start`` and ``stop``; one per process."""

    def __init__(self) -> None:
        self.last_seconds = 0.0
        self._due = 0.0
        self._thresholds: tuple[int, int, int] | None = None

    def start(self) -> None:
        """Set what is there now apart, for most of it stays: modules, classes, code."""
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*YOUNG_THRESHOLDS)
        gc.collect()
        gc.freeze()
        self._due = time.monotonic() + PERIOD_SECONDS

    def stop(self) -> None:
        """Leave everything as it was found."""
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()
            self._thresholds = None

    def collect(self, left: float) -> None:
        """Collect if it is time and expected to fit into ``left`` seconds."""
        now = time.monotonic()
        if self._thresholds is None or now < self._due or 2 * self.last_seconds > left:
            return
        gc.collect()
        self.last_seconds = time.monotonic() - now
        if self.last_seconds > LONG_SECONDS:
            # Mostly stored blocks, which live on: looking at them again would take ever longer.
            gc.freeze()
            self.last_seconds = 0.0
        self._due = time.monotonic() + PERIOD_SECONDS
