"""Limits the memory of notifications that are queued for subscribers.

The messages about an event are built once and shared by the queues of all subscribers, so the
messages count once. Above the limit, the subscriptions that still wait for the oldest messages are
closed, because their clients read slowest. The size of a single block never closes a subscription.
"""

from typing import Final, Protocol

# bytes of a queued message without its text: an object and its position in lists
MESSAGE_MEMORY: Final = 64


class Reader(Protocol):
    """A subscription. ``drop`` removes its queued messages and closes it as too slow."""

    def drop(self) -> None: ...


class Backlog:
    """Counts the bytes of all subscribers' queued notifications. Use only on the event loop."""

    __slots__ = ("_held", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._held: dict[Parcel, None] = {}  # the oldest first

    def parcel(self, size: int) -> "Parcel":
        """Return a parcel of messages with ``size`` bytes, which count while a reader waits."""
        return Parcel(self, size)

    def trim(self) -> None:
        """Close the slowest readers while the size exceeds the limit. Keeps the newest parcel."""
        while self.used > self.limit and len(self._held) > 1:
            for reader in tuple(next(iter(self._held)).readers):
                reader.drop()

    def add(self, parcel: "Parcel") -> None:
        """Count a parcel."""
        self._held[parcel] = None
        self.used += parcel.size

    def remove(self, parcel: "Parcel") -> None:
        """Stop counting a parcel."""
        del self._held[parcel]
        self.used -= parcel.size


class Parcel:
    """Messages that were built in one step, and the readers that still wait for these messages."""

    __slots__ = ("backlog", "readers", "size")

    def __init__(self, backlog: Backlog, size: int) -> None:
        self.backlog = backlog
        self.size = size
        self.readers: dict[Reader, None] = {}

    def hold(self, reader: Reader) -> None:
        """Record that a reader waits for the messages, which count until `release`."""
        if not self.readers:
            self.backlog.add(self)
        self.readers[reader] = None

    def release(self, reader: Reader) -> None:
        """Record that a reader has received the messages, or will never receive them."""
        if reader in self.readers:
            del self.readers[reader]
            if not self.readers:
                self.backlog.remove(self)
