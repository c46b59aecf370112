"""Stores polled filters by id. Their number is limited, and unpolled filters expire."""

import os
import time
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, NamedTuple, TypeVar

from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.errors import RpcError
from fastevm.rpc.subscriptions.filter_quota import WATCH_SIZE, FilterQuota

ID_BYTES: Final = 16

Filter = TypeVar("Filter")


class Installed(NamedTuple, Generic[Filter]):
    """A filter, the time of its last use, its client, and its size in bytes of memory."""

    filter: Filter
    used: float
    client: str
    size: int


class Filters(Generic[Filter]):
    """The filters of all clients, at most ``limit``.

    A filter expires if it is not polled for ``lifetime`` seconds.
    """

    def __init__(
        self,
        *,
        limit: int,
        lifetime: float,
        client_limit: int | None = None,
        room: FilterQuota | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.client_limit = limit if client_limit is None else client_limit
        self.lifetime = lifetime
        self.room = room
        self.clock = clock
        self._lock = Lock()
        # filters by id, in the order of their last use
        self._filters: dict[str, Installed[Filter]] = {}
        self._counts: Counter[str] = Counter()  # number of filters by client

    def __len__(self) -> int:
        return len(self._filters)

    def install(self, new: Filter, size: int = 0) -> str:
        """Add a filter whose addresses and topics take ``size`` bytes of memory. Returns its id."""
        with self._lock:
            now, client = self.clock(), CLIENT.get()
            self._expire(now)
            if self._counts[client] >= self.client_limit:
                raise RpcError("too_many_filters", limit=self.client_limit)
            if len(self._filters) >= self.limit:
                raise RpcError("too_many_filters", limit=self.limit)
            size += WATCH_SIZE
            if self.room is not None:
                self.room.take(client, size)
            filter_id = f"0x{int.from_bytes(os.urandom(ID_BYTES)):x}"
            self._filters[filter_id] = Installed(new, now, client, size)
            self._counts[client] += 1
            return filter_id

    def use(self, filter_id: str) -> Filter:
        """Return a filter and renew its lifetime. Raises RpcError if the id is unknown."""
        with self._lock:
            now = self.clock()
            self._expire(now)
            found = self._filters.pop(filter_id, None)
            if found is None:
                raise RpcError("filter_not_found")
            self._filters[filter_id] = found._replace(used=now)
            return found.filter

    def drop(self, filter_id: str) -> bool:
        """Remove a filter. Returns whether the id was known."""
        with self._lock:
            return self._remove(filter_id)

    def _expire(self, now: float) -> None:
        """Remove expired filters. They come first, because the filters are in order of use."""
        while self._filters:
            oldest, installed = next(iter(self._filters.items()))
            if now - installed.used < self.lifetime:
                return
            self._remove(oldest)

    def _remove(self, filter_id: str) -> bool:
        found = self._filters.pop(filter_id, None)
        if found is None:
            return False
        client = found.client
        if self.room is not None:
            self.room.give_back(client, found.size)
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]
        return True
