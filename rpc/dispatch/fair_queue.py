"""A queue that divides processor time fairly between clients (start-time fair queuing).

The next job belongs to the client that has used the least time. A new client starts with the used
time of the last job's client. So an idle client saves up no time, and time used long ago does not
count against a client.
"""

from collections import deque
from heapq import heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from msgspec import Struct, field

Item = TypeVar("Item")

# most idle clients whose used time is remembered; above this number, all are forgotten
IDLE_SHARES: Final = 1_024


class Share(Struct, Generic[Item], eq=False):
    """The waiting items of one client, and the client's used processor time in seconds."""

    used: float = 0.0
    running: int = 0
    is_listed: bool = False
    waiting: deque[Item] = field(default_factory=deque)


class FairQueue(Generic[Item]):
    """A fair queue of the items of clients. Callers must hold a lock.

    At most ``running_limit`` items of one client are between `pop` and `done`. None means no limit.
    """

    def __init__(self, running_limit: int | None = None) -> None:
        self.running_limit = running_limit
        self._shares: dict[str, Share[Item]] = {}
        # (used time, order, client) of clients whose next item may run
        self._heap: list[tuple[float, int, str]] = []
        self._order = count()  # breaks ties between clients that have used the same time
        self._clock = 0.0  # used time of the client whose item was popped last
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def push(self, client: str, item: Item) -> None:
        """Append an item of a client."""
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
        """Remove and return (client, item), or None if no item may run. Call `done` afterwards."""
        while self._heap:
            used, _, client = heappop(self._heap)
            share = self._shares[client]
            share.is_listed = False
            if share.used > used:  # charged after it was added to the heap
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
        """Add the processor time of a finished item, in seconds, to a client's used time."""
        share = self._shares[client]
        share.used += seconds
        share.running -= 1
        self._list(client, share)

    def clear(self) -> None:
        """Drop all waiting items."""
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
