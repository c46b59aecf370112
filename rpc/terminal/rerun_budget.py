"""The time that the terminal may take to execute again what it reports."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

SHARE: Final = 0.2  # of one processor
BURST: Final = 5.0  # seconds that may be taken in advance
LONGEST: Final = 1.0  # seconds of one execution
TREE_SIZE: Final = 4 * 1024 * 1024  # bytes of JSON of a call tree that is read
SPENT: Final = "not available: too much was executed again lately"
TOO_LARGE: Final = f"not available: its calls take more than {TREE_SIZE} bytes"


class RerunBudget:
    """Seconds of execution that are left: `SHARE` of the time that passes, at most `BURST`.

    Whoever calls a node chooses what it costs to execute again, so the terminal has a limit.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = BURST, clock()
        self._lock = Lock()

    @property
    def is_spent(self) -> bool:
        """Whether nothing may be executed again at this time."""
        with self._lock:
            now = self._clock()
            self._left = min(BURST, self._left + SHARE * (now - self._at))
            self._at = now
            return self._left <= 0

    @contextmanager
    def charge(self) -> Iterator[None]:
        """Takes the time of what runs inside."""
        began = self._clock()
        try:
            yield
        finally:
            with self._lock:
                self._left -= self._clock() - began
