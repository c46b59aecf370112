"""A queue that divides processor time fairly between clients.

It is start-time fair queuing: the next job is one of the client that has used the least time. A
client that begins to ask starts at the time of the job that ran last, so it is neither rewarded for
having been idle nor made to pay for what it used long ago.
"""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

Item = TypeVar("Item")

IDLE_SHARES: Final = 1_024  # clients without jobs that are remembered; beyond it they are forgotten


class Share(Struct, Generic[Item], eq=False):
    """What one client waits for, and has used. ``used`` in seconds on the queue's clock."""

    used: float = 0.0
    running: int = 0
    is_listed: bool = False
    waiting: deque[Item] = field(default_factory=deque)


class FairQueue(Generic[Item]):
    """Items by client. Not safe for threads: callers hold a lock.

    ``running_limit``: items of one client that may be taken and not done; None: any number.
    """

    def __init__(self, running_limit: int | None = None) -> None:
        self.running_limit = running_limit
        self._shares: dict[str, Share[Item]] = {}
        self._heap: list[tuple[float, int, str]] = []  # clients whose next item may be taken
        self._order = count()  # among clients that have used the same time
        self._clock = 0.0  # the time used by the client whose item was taken last
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, client: str, item: Item) -> None:
        """Add an item of a client."""
        share = self._shares.get(client)
        if share is None:
            if len(self._shares) >= IDLE_SHARES:
                self._forget_idle()
            share = self._shares[client] = Share()
        if not share.waiting and not share.running:
            share.used = max(share.used, self._clock)
        share.waiting.append(item)
        self._size += 1
        self._list(client, share)

    def pop(self) -> tuple[str, Item] | None:
        """Take the next item and return it with its client; call `done` with that client later."""
        while self._heap:
            used, _, client = heappop(self._heap)
            share = self._shares[client]
            share.is_listed = False
            if share.used > used:  # it was charged since it was listed
                self._list(client, share)
                continue
            item = share.waiting.popleft()
            self._size -= 1
            share.running += 1
            self._clock = max(self._clock, share.used)
            self._list(client, share)
            return client, item
        return None

    def done(self, client: str, seconds: float) -> None:
        """Charge a client with the processor time of an item that was taken."""
        share = self._shares[client]
        share.used += seconds
        share.running -= 1
        self._list(client, share)

    def clear(self) -> None:
        """Drop all items that wait."""
        for share in self._shares.values():
            share.waiting.clear()
            share.is_listed = False
        self._heap.clear()
        self._size = 0

    def _list(self, client: str, share: Share[Item]) -> None:
        if share.is_listed or not share.waiting:
            return
        if self.running_limit is None or share.running < self.running_limit:
            share.is_listed = True
            heappush(self._heap, (share.used, next(self._order), client))

    def _forget_idle(self) -> None:
        busy = {
            client: share
            for client, share in self._shares.items()
            if share.waiting or share.running
        }
        self._shares = busy
