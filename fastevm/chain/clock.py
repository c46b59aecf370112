"""The time that blocks are stamped with: the system's, unless a developer turned it."""

import time


class BlockClock:
    """Wall time in seconds plus ``offset``, and perhaps a time that was set for the next block."""

    def __init__(self) -> None:
        self.offset = 0
        self._next: int | None = None

    def now(self) -> int:
        """The time of this moment."""
        return int(time.time()) + self.offset

    def at(self, wall: int) -> int:
        """The timestamp of a block that begins now and would have ``wall``; uses up a set time."""
        found, self._next = self._next, None
        return wall + self.offset if found is None else found

    def set_next(self, timestamp: int) -> None:
        """Stamp the next block with this."""
        self._next = timestamp

    def go_on_from(self, timestamp: int) -> None:
        """Make this the time of this moment."""
        self.offset = timestamp - int(time.time())
