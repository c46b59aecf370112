"""Limits the memory of requests, messages and answers in progress, over all listeners.

Each connection, message queue and batch has a `Holding`. Above the limit, the connections of the
client that holds most are closed, the largest first. So a client that holds little keeps its
connections, whatever other clients do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

HALF: Final = 2
# While more than half of the limit is in use, only a client that uses less than 1/CLIENT_PART of
# the limit may begin work whose memory cannot be freed.
CLIENT_PART: Final = 8


class TrafficBudget:
    """The bytes that all holdings may have in total. Use only on the event loop."""

    __slots__ = ("_by_client", "_holdings", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._holdings: dict[str, set[Holding]] = {}  # holdings with an ``end``, by client
        self._by_client: Counter[str] = Counter()

    def holding(self, client: str, end: Callable[[], None] | None = None) -> Holding:
        """Return a holding, which charges memory to a client. ``end`` must free that memory soon.

        A holding without ``end`` cannot be freed. Ask `has_room` before charging more to such a
        holding.
        """
        return Holding(self, client, end)

    def has_room(self, client: str) -> bool:
        """Return whether a client may begin work with memory that cannot be freed."""
        return self.used < self.limit // HALF or self._by_client[client] < self.limit // CLIENT_PART

    def resize(self, holding: Holding, size: int) -> None:
        """Set the size of a holding, then end other holdings while the sum exceeds the limit."""
        self._set(holding, size)
        while self.used > self.limit and self._holdings:
            client = max(self._holdings, key=self._by_client.__getitem__)
            largest = max(self._holdings[client], key=lambda item: item.size)
            self._set(largest, 0)
            assert largest.end is not None
            largest.end()

    def _set(self, holding: Holding, size: int) -> None:
        change, client = size - holding.size, holding.client
        if not change:
            return
        if holding.end is not None:
            if not holding.size:
                self._holdings.setdefault(client, set()).add(holding)
            elif not size:
                self._holdings[client].discard(holding)
                if not self._holdings[client]:
                    del self._holdings[client]
        holding.size = size
        self.used += change
        self._by_client[client] += change
        if not self._by_client[client]:
            del self._by_client[client]


class Holding:
    """The bytes that one connection, message queue or batch of a client has in memory."""

    __slots__ = ("budget", "client", "end", "size")

    def __init__(self, budget: TrafficBudget, client: str, end: Callable[[], None] | None) -> None:
        self.budget, self.client, self.end = budget, client, end
        self.size = 0

    def hold(self, requests: int, answers: int = 0) -> None:
        """Set the size in bytes.

        Answers count for at most half of the limit, so that one large answer can always be read.
        """
        self.budget.resize(self, requests + min(answers, self.budget.limit // HALF))

    def close(self) -> None:
        """Set the size to 0 and drop ``end``."""
        self.budget.resize(self, 0)
        self.end = None
