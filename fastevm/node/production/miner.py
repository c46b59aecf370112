"""Decides when a development node builds blocks: for each transaction, at an interval, or on
demand.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from fastevm.node.production.block_producer import BlockProducer

log = logging.getLogger(__name__)

MIN_INTERVAL = 0.01  # seconds between blocks
MAX_INTERVAL = 10**9  # seconds
STOP_SECONDS = 5.0  # seconds to wait for the thread to end


class Miner:
    """Makes a producer build blocks. ``automine``: build one immediately for each transaction.

    A producer of slices builds blocks until the mode changes. It resumes if the interval is set to
    the producer's block time.
    """

    def __init__(
        self,
        producer: BlockProducer,
        paused: Callable[[], None] = lambda: None,
        *,
        automine: bool = False,
    ) -> None:
        """Creates the miner. ``paused()`` is called after the producer paused or resumed."""
        self.producer, self.paused, self.automine = producer, paused, automine
        self.interval: float | None = producer.block_time
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def set_automine(self, wanted: bool) -> None:
        """Sets whether a block is built for each transaction.

        True also stops building blocks at an interval. False changes nothing while blocks are built
        at an interval.
        """
        with self._lock:
            if self.automine and self.interval is None and not wanted:
                self.automine = False
            elif wanted and not (self.automine and self.interval is None):
                self._set_mode(automine=True, interval=None)
                if self.producer.pool.executable_count:
                    self.producer.mine()

    def set_interval(self, seconds: float | None, *, automine: bool = False) -> None:
        """Builds a block every ``seconds`` and on demand. None or 0: only on demand.

        ``automine``: also build a block for each transaction. Raises ValueError for an interval out
        of bounds.
        """
        if seconds is not None and seconds != 0 and not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
            raise ValueError(f"interval {seconds}: expected {MIN_INTERVAL} to {MAX_INTERVAL} s")
        with self._lock:
            self._set_mode(automine=automine, interval=float(seconds) if seconds else None)

    def stop(self) -> None:
        """Stops building blocks at an interval."""
        with self._lock:
            self._end_thread()

    def _set_mode(self, *, automine: bool, interval: float | None) -> None:
        self._end_thread()
        self.automine, self.interval = automine, interval
        by_itself = interval is not None and interval == self.producer.block_time and not automine
        self.producer.pause(not by_itself)
        self.paused()
        if interval is not None and not by_itself:
            self._ended = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(interval, self._ended), name="fastevm-miner", daemon=True
            )
            self._thread.start()

    def _end_thread(self) -> None:
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)
        self._thread = None

    def _run(self, interval: float, ended: threading.Event) -> None:
        due = time.monotonic() + interval
        while not ended.wait(max(0.0, due - time.monotonic())):
            try:
                self.producer.mine()
            except Exception:  # the next block is still built when it is due
                log.exception("a block could not be made")
            due = max(due + interval, time.monotonic())
