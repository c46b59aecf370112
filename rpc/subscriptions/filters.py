"""The filters that clients poll, by id, bounded in number; an unpolled one expires."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from threading import Lock
from typing import Final, Generic, TypeVar

from fastevm.rpc.errors import RpcError

ID_BYTES: Final = 16

# The address whose request is answered, in a task, and in a worker's job of it as well.
CLIENT: Final[ContextVar[str]] = ContextVar("client", default="")

Filter = TypeVar("Filter")


class Filters(Generic[Filter]):
    """The filters of all clients, at most ``limit``; one not polled for ``lifetime`` seconds goes.

    Of one client (`CLIENT`) there are at most ``client_limit``, so that it does not shut out
    others. Any thread may call.
    """

    def __init__(
        self,
        *,
        limit: int,
        lifetime: float,
        client_limit: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.client_limit = limit if client_limit is None else client_limit
        self.lifetime = lifetime
        self.clock = clock
        self._lock = Lock()
        # by id, with the time of the last use and the client
        self._filters: dict[str, tuple[Filter, float, str]] = {}
        self._counts: Counter[str] = Counter()  # of each client that has any

    def __len__(self) -> int:
        return len(self._filters)

    def install(self, new: Filter) -> str:
        """Keep a filter and return its id."""
        with self._lock:
            now, client = self.clock(), CLIENT.get()
            self._expire(now)
            if self._counts[client] >= self.client_limit:
                raise RpcError("too_many_filters", limit=self.client_limit)
            if len(self._filters) >= self.limit:
                raise RpcError("too_many_filters", limit=self.limit)
            filter_id = f"0x{int(secrets.token_hex(ID_BYTES), 16):x}"
            self._filters[filter_id] = (new, now, client)
            self._counts[client] += 1
            return filter_id

    def use(self, filter_id: str) -> Filter:
        """Return a filter, which lives on from now; an error if there is none with this id."""
        with self._lock:
            now = self.clock()
            self._expire(now)
            found = self._filters.pop(filter_id, None)
            if found is None:
                raise RpcError("filter_not_found")
            self._filters[filter_id] = (found[0], now, found[2])
            return found[0]

    def drop(self, filter_id: str) -> bool:
        """Forget a filter; whether there was one with this id."""
        with self._lock:
            return self._remove(filter_id)

    def _expire(self, now: float) -> None:
        """Remove what expired: it stands in front, for the order is that of the last use."""
        while self._filters:
            oldest, (_, used, _) = next(iter(self._filters.items()))
            if now - used < self.lifetime:
                return
            self._remove(oldest)

    def _remove(self, filter_id: str) -> bool:
        found = self._filters.pop(filter_id, None)
        if found is None:
            return False
        client = found[2]
        self._counts[client] -= 1
        if not self._counts[client]:
            del self._counts[client]
        return True
