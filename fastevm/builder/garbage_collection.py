"""Garbage collection at moments that do not matter: right after a slice.

A full collection stops every thread for as long as it takes to look at all objects: measured
100 ms in a node that has just started, which would make slices late at random moments.
"""

import gc
import time

YOUNG_THRESHOLDS = (10_000, 10, 1_000_000)  # the last: never a full collection by itself
SETTLE_SECONDS = 3.0  # after the start; by then all modules are loaded
PERIOD_SECONDS = 30.0
LONG_SECONDS = 0.04  # a full collection that takes longer leaves its survivors out of the next


class Collector:
    """Takes over full collections between ``start`` and ``stop``; one per process."""

    def __init__(self) -> None:
        self.last_seconds = 0.0
        self._due = 0.0
        self._settled = False
        self._thresholds: tuple[int, int, int] | None = None

    def start(self) -> None:
        """From now on nothing is collected in full but by `collect`."""
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*YOUNG_THRESHOLDS)
        self._settled = False
        self._due = time.monotonic() + SETTLE_SECONDS

    def stop(self) -> None:
        """Leave everything as it was found."""
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()
            self._thresholds = None

    def collect(self, left: float) -> None:
        """Collect if it is time and expected to fit into ``left`` seconds.

        The first time only sets what is there apart, unseen: modules, classes and code stay, and
        loading them leaves a few dozen objects of garbage.
        """
        now = time.monotonic()
        if self._thresholds is None or now < self._due or 2 * self.last_seconds > left:
            return
        if not self._settled:
            gc.freeze()
            self._settled = True
            self._due = now + PERIOD_SECONDS
            return
        gc.collect()
        self.last_seconds = time.monotonic() - now
        if self.last_seconds > LONG_SECONDS:
            # Mostly stored blocks, which live on: looking at them again would take ever longer.
            gc.freeze()
            self.last_seconds = 0.0
        self._due = time.monotonic() + PERIOD_SECONDS
