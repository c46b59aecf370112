"""Limits the time that the terminal spends on executing calls and transactions again."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

SHARE: Final = 0.2  # largest share of one processor
BURST: Final = 5.0  # seconds that unused time may add up to
LONGEST: Final = 1.0  # most seconds of one execution
TREE_SIZE: Final = 4 * 1024 * 1024  # largest call tree in bytes of JSON that is parsed
SPENT: Final = "not available: too much was executed again lately"
TOO_LARGE: Final = f"not available: its calls take more than {TREE_SIZE} bytes"


class RerunBudget:
    """A budget of seconds that grows by `SHARE` of the elapsed time, up to `BURST`.

    Clients of a node decide how much time their transactions take, so the terminal needs a limit.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = BURST, clock()
        self._lock = Lock()

    @property
    def is_spent(self) -> bool:
        """Whether the budget is used up. If so, nothing may be executed again now."""
        with self._lock:
            now = self._clock()
            self._left = min(BURST, self._left + SHARE * (now - self._at))
            self._at = now
            return self._left <= 0

    @contextmanager
    def charge(self) -> Iterator[None]:
        """Subtract the duration of the with block from the budget."""
        began = self._clock()
        try:
            yield
        finally:
            with self._lock:
                self._left -= self._clock() - began
