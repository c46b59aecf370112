"""The filters that clients poll, by id, bounded in number; an unpolled one expires."""

import secrets
import time
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

from fastevm.rpc.errors import RpcError

ID_BYTES: Final = 16

Filter = TypeVar("Filter")


class Filters(Generic[Filter]):
    """The filters of all clients, at most ``limit``; one not polled for ``lifetime`` seconds goes.

    Of one client there are at most ``client_limit``, so that it does not shut out others.
    ``client`` is the address whose request the event loop answers at the moment. Any thread may
    call.
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
        self.client = ""
        self.lifetime = lifetime
        self.clock = clock
        self._lock = Lock()
        # by id, with the time of the last use and the client
        self._filters: dict[str, tuple[Filter, float, str]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def install(self, new: Filter) -> str:
        """Keep a filter and return its id."""
        with self._lock:
            now = self.clock()
            # in the order of last use, so the expired ones stand in front
            for known, (_, used, _) in tuple(self._filters.items()):
                if now - used < self.lifetime:
                    break
                del self._filters[known]
            own = sum(kept[2] == self.client for kept in self._filters.values())
            if own >= self.client_limit:
                raise RpcError("too_many_filters", limit=self.client_limit)
            if len(self._filters) >= self.limit:
                raise RpcError("too_many_filters", limit=self.limit)
            filter_id = f"0x{int(secrets.token_hex(ID_BYTES), 16):x}"
            self._filters[filter_id] = (new, now, self.client)
            return filter_id

    def use(self, filter_id: str) -> Filter:
        """Return a filter, which lives on from now; an error if there is none with this id."""
        with self._lock:
            found = self._filters.pop(filter_id, None)
            now = self.clock()
            if found is None or now - found[1] >= self.lifetime:
                raise RpcError("filter_not_found")
            self._filters[filter_id] = (found[0], now, found[2])
            return found[0]

    def drop(self, filter_id: str) -> bool:
        """Forget a filter; whether there was one with this id."""
        with self._lock:
            return self._filters.pop(filter_id, None) is not None
