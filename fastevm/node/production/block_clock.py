"""The timestamps of blocks. They follow the system's clock unless a developer changed it."""

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
    """A clock for block timestamps: system time plus ``offset`` seconds.

    ``interval``: seconds between block timestamps, or None if timestamps follow the clock. A
    timestamp that is set for the next block overrides the interval.
    """

    def __init__(self) -> None:
        self.offset = 0
        self.interval: int | None = None
        self._next: int | None = None
        self._last: int | None = None  # replaces the head's timestamp until a block is sealed
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
        """Raises ValueError for a timestamp above MAX_TIMESTAMP."""
        if timestamp > MAX_TIMESTAMP:
            raise ValueError(f"timestamp {timestamp}, limit {MAX_TIMESTAMP}")

    def next_timestamp(self, system_time: int, parent: int, least_step: int) -> int:
        """Returns the timestamp of a child of a block with timestamp ``parent``, all in seconds.

        ``system_time``: the system's time. ``least_step``: 0 if blocks may share a second. If the
        clock is behind the parent, the result is at least a second after the parent. A timestamp
        that `set_next` has set is valid until `sealed`.
        """
        last = self.last(parent)
        if self._next is not None:
            wanted = self._next
        elif self.interval is not None:
            # the previous timestamp plus the interval, whatever the clock shows
            wanted = min(last + self.interval, MAX_TIMESTAMP)
        else:
            wanted = system_time + self.offset
        if wanted < last:
            wanted = last + max(least_step, 1)
        return max(wanted, parent + least_step)

    def last(self, parent: int) -> int:
        """Returns the lower bound of the next timestamp: the parent's timestamp, or the time that
        was set.
        """
        return parent if self._last is None else max(self._last, parent)

    def begun(self, system_time: int) -> None:
        """Records the system time at which a block begins."""
        self._begun = system_time

    def sealed(self, timestamp: int) -> None:
        """Records the timestamp of a sealed block.

        If `set_next` had set this timestamp, the clock continues from it.
        """
        self._last = None
        if self._next is not None:
            self._next = None
            self.offset = timestamp - self._begun

    def set_next(self, timestamp: int) -> None:
        """Sets the timestamp of the next block, in seconds."""
        self._next = timestamp

    def set_now(self, timestamp: int) -> None:
        """Sets the current time in seconds. Removes a timestamp set for the next block."""
        self.offset = timestamp - int(time.time())
        self._next, self._last = None, timestamp

    def kept(self) -> KeptTime:
        """Returns the settings of the clock."""
        return KeptTime(self.offset, self.interval, self._next, self._last, int(time.time()))

    def restore(self, kept: KeptTime) -> None:
        """Restores settings as if no time had passed since `kept` was called."""
        self.offset = kept.offset - (int(time.time()) - kept.system_time)
        self.interval, self._next, self._last = kept.interval, kept.next, kept.last
