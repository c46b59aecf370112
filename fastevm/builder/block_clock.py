"""The timestamps of blocks: the system's clock, unless a developer changed it."""

from __future__ import annotations

import time
from copy import copy
from typing import Final

MAX_TIMESTAMP: Final = 2**62  # seconds; far below 2**64, so that later blocks have timestamps too


class BlockClock:
    """System time plus ``offset`` seconds, and at most one timestamp set for the next block."""

    def __init__(self) -> None:
        self.offset = 0
        self._next: int | None = None

    def copy(self) -> BlockClock:
        """A clock that shows the same, to go back to it."""
        return copy(self)

    def now(self) -> int:
        """The current time in seconds."""
        return int(time.time()) + self.offset

    @staticmethod
    def check(timestamp: int) -> None:
        """ValueError for a timestamp above MAX_TIMESTAMP."""
        if timestamp > MAX_TIMESTAMP:
            raise ValueError(f"timestamp {timestamp}, limit {MAX_TIMESTAMP}")

    def take_timestamp(self, system_time: int) -> int:
        """The timestamp of a block that begins now; a timestamp that was set is used up.

        ``system_time``: the timestamp by the system's clock, in seconds.
        """
        timestamp, self._next = self._next, None
        return system_time + self.offset if timestamp is None else timestamp

    def set_next(self, timestamp: int) -> None:
        """Give the next block this timestamp (seconds)."""
        self._next = timestamp

    def set_now(self, timestamp: int) -> None:
        """Make ``timestamp`` (seconds) the current time."""
        self.offset = timestamp - int(time.time())
