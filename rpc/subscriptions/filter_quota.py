"""Limits the memory of filters and subscriptions, per address and in total."""

from collections import Counter
from threading import Lock
from typing import Final

from fastevm.rpc.errors import RpcError

# bytes of memory of a filter or subscription, without its addresses and topics
WATCH_SIZE: Final = 1_500


class FilterQuota:
    """Counts the bytes that filters and subscriptions use.

    Allows at most ``limit`` bytes in total and ``address_limit`` per address. Thread-safe.
    """

    def __init__(self, limit: int, address_limit: int) -> None:
        self.limit, self.address_limit = limit, address_limit
        self.used = 0
        self._by_address: Counter[str] = Counter()
        self._lock = Lock()

    def take(self, address: str, size: int) -> None:
        """Reserve bytes for an address. Raises RpcError beyond a limit."""
        with self._lock:
            most = self.address_limit
            if self._by_address[address] + size > most:
                raise RpcError("watches_too_large", whose=" of one address", limit=most)
            if self.used + size > self.limit:
                raise RpcError("watches_too_large", whose="", limit=self.limit)
            self.used += size
            self._by_address[address] += size

    def give_back(self, address: str, size: int) -> None:
        """Release bytes that an address has reserved."""
        with self._lock:
            self.used -= size
            self._by_address[address] -= size
            if not self._by_address[address]:
                del self._by_address[address]
