"""Runs full garbage collections right after a slice, when they delay no slice.

A full collection stops every thread, for 100 ms in a node that has just started.
"""

import gc
import time

YOUNG_THRESHOLDS = (10_000, 10, 1_000_000)  # the last threshold disables automatic full collections
SETTLE_SECONDS = 3.0  # seconds after the start, when all modules are loaded
PERIOD_SECONDS = 30.0
LONG_SECONDS = 0.04  # seconds; after a longer collection, the surviving objects are frozen


class Collector:
    """Runs the full collections between ``start`` and ``stop``. A process has one collector."""

    def __init__(self) -> None:
        self.last_seconds = 0.0
        self._due = 0.0
        self._settled = False
        self._thresholds: tuple[int, int, int] | None = None

    def start(self) -> None:
        """Disables automatic full collections."""
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*YOUNG_THRESHOLDS)
        self._settled = False
        self._due = time.monotonic() + SETTLE_SECONDS

    def stop(self) -> None:
        """Restores the previous settings of the garbage collector."""
        if self._thresholds is not None:
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()
            self._thresholds = None

    def collect(self, left: float) -> None:
        """Runs a collection if it is due and should take less than ``left`` seconds.

        The first call freezes all objects instead, because modules, classes and code live as long
        as the process.
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
            # Most survivors are stored blocks. Without freezing, each collection would take longer.
            gc.freeze()
            self.last_seconds = 0.0
        self._due = time.monotonic() + PERIOD_SECONDS
