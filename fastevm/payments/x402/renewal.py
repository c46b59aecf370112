"""Renews grants, so that other processes see that this process still works on a payment.

A thread renews them, because a handler may block the event loop.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fastevm.payments.x402.grants import Grants

log: Final = logging.getLogger(__name__)

EVERY_SECONDS: Final = 30.0  # a quarter of the time after which a process counts as gone


class Renewal:
    """Renews the grants that this process holds, every ``EVERY_SECONDS``."""

    def __init__(self, grants: Grants) -> None:
        self.grants = grants
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._held: dict[str, str] = {}  # id of the holder, by the grant's key
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def of(self, key: str, holder: str) -> Iterator[None]:
        """Renews a grant until the block ends."""
        if self._process != os.getpid():  # after a fork: the parent renews its own grants
            self._begin()
        with self._lock:
            self._held[key] = holder
            if self._thread is None or not self._thread.is_alive():  # also after a fork
                self._thread = threading.Thread(target=self._run, daemon=True, name="x402-renewal")
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(key, None)

    def _run(self) -> None:
        """Renews the held grants until this process holds none."""
        while True:
            time.sleep(EVERY_SECONDS)
            with self._lock:
                held = list(self._held.items())
                if not held:
                    self._thread = None
                    return
            for key, holder in held:
                try:
                    self.grants.renew(key, holder, time.time())
                except Exception:  # an error of the store; the next round tries again
                    log.exception("a payment that is worked on was not renewed")
