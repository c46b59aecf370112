"""The timestamps of blocks: the system's clock, unless a developer changed it."""

import time


class BlockClock:
    """System time plus ``offset`` seconds, and at most one timestamp set for the next block."""

    def __init__(self) -> None:
        self.offset = 0
        self._next: int | None = None

    def now(self) -> int:
        """The current time in seconds."""
        return int(time.time()) + self.offset

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
