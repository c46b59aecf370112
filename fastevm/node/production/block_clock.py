"""The timestamps of blocks: the system's clock, unless a developer changed it."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

MAX_TIMESTAMP: Final = 2**62  # seconds; far below 2**64, so that later blocks have timestamps too


class KeptTime(NamedTuple):
    """The settings of a `BlockClock`, and the system time (seconds) at which they were saved."""

    offset: int
    interval: int | None
    next: int | None
    last: int | None
    system_time: int


class BlockClock:
    """System time plus ``offset`` seconds, at most one timestamp set for the next block.

    ``interval``: seconds from each block to the next, in place of the time that passes; None: time
    passes. A timestamp that was set comes first, then the interval, then the time.
    """

    def __init__(self) -> None:
        self.offset = 0
        self.interval: int | None = None
        self._next: int | None = None
        self._last: int | None = None  # in place of the head's timestamp, until a block is sealed
        self._begun = 0  # system time of the block under construction

    def now(self) -> int:
        """The current time in seconds."""
        return int(time.time()) + self.offset

    @staticmethod
    def system_time() -> int:
        """The system's time in seconds."""
        return int(time.time())

    @staticmethod
    def check(timestamp: int) -> None:
        """ValueError for a timestamp above MAX_TIMESTAMP."""
        if timestamp > MAX_TIMESTAMP:
            raise ValueError(f"timestamp {timestamp}, limit {MAX_TIMESTAMP}")

    def next_timestamp(self, system_time: int, parent: int, least_step: int) -> int:
        """The timestamp of a child of a block at ``parent`` (seconds); it stays to be used.

        ``system_time``: the timestamp by the system's clock. ``least_step``: 0 where blocks may
        share a second; a time that lies before the parent is a second after it then.
        """
        last = self.last(parent)
        if self._next is not None:
            wanted = self._next
        elif self.interval is not None:
            wanted = last + self.interval
        else:
            wanted = system_time + self.offset
        if wanted < last:
            wanted = last + max(least_step, 1)
        return max(wanted, parent + least_step)

    def last(self, parent: int) -> int:
        """The timestamp that the next one is not before: the parent's, or the time that was set."""
        return parent if self._last is None else max(self._last, parent)

    def begun(self, system_time: int) -> None:
        """A block begins whose timestamp by the system's clock is this."""
        self._begun = system_time

    def sealed(self, timestamp: int) -> None:
        """A block has this timestamp: one that was set is used up, and time goes on from it."""
        self._last = None
        if self._next is not None:
            self._next = None
            self.offset = timestamp - self._begun

    def set_next(self, timestamp: int) -> None:
        """Give the next block this timestamp (seconds)."""
        self._next = timestamp

    def set_now(self, timestamp: int) -> None:
        """Make ``timestamp`` (seconds) the current time; one set for the next block is void."""
        self.offset = timestamp - int(time.time())
        self._next, self._last = None, timestamp

    def kept(self) -> KeptTime:
        """What the clock is set to now."""
        return KeptTime(self.offset, self.interval, self._next, self._last, int(time.time()))

    def restore(self, kept: KeptTime) -> None:
        """Continue from the time at which `kept` was called, as if none had passed since."""
        self.offset = kept.offset - (int(time.time()) - kept.system_time)
        self.interval, self._next, self._last = kept.interval, kept.next, kept.last
