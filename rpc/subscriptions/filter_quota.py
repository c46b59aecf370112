"""Memory of what clients watch, filters and subscriptions: bounded for an address and for all."""

from collections import Counter
from threading import Lock
from typing import Final

from fastevm.rpc.errors import RpcError

WATCH_SIZE: Final = 1_500  # bytes of memory of a filter or subscription, what it selects apart


class FilterQuota:
    """Bytes that filters and subscriptions take: at most ``limit``, ``address_limit`` of one.

    Any thread may call.
    """

    def __init__(self, limit: int, address_limit: int) -> None:
        self.limit, self.address_limit = limit, address_limit
        self.used = 0
        self._by_address: Counter[str] = Counter()
        self._lock = Lock()

    def take(self, address: str, size: int) -> None:
        """Reserve bytes for an address. Raises RpcError if there are too few."""
        with self._lock:
            most = self.address_limit
            if self._by_address[address] + size > most:
                raise RpcError("watches_too_large", whose=" of one address", limit=most)
            if self.used + size > self.limit:
                raise RpcError("watches_too_large", whose="", limit=self.limit)
            self.used += size
            self._by_address[address] += size

    def give_back(self, address: str, size: int) -> None:
        """Give back what an address has taken."""
        with self._lock:
            self.used -= size
            self._by_address[address] -= size
            if not self._by_address[address]:
                del self._by_address[address]
