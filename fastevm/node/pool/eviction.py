"""Eviction: selects the transaction that leaves when a subpool is full.

A transaction is ranked by its effective tip at the base fee of the next block. A block cannot
include a transaction before the sender's earlier transactions, so the rank uses the lowest fee caps
among all of these. If the rank is negative, no block can include the transaction now.
"""

import heapq
from collections.abc import Callable, Generator, Iterable
from typing import Final

from msgspec import Struct

from fastevm.node.pool.pooled_transaction import (
    EXECUTABLE,
    NO_SUBPOOL,
    FeeCaps,
    PooledTransaction,
    Subpool,
)

MAX_STALE: Final = 64  # stale heap entries allowed in addition to the number of live ones

# tip in wei per gas, and minus the arrival number: among equal tips, the newest leaves first
Rank = tuple[int, int]


class NextFees(Struct, frozen=True):
    """The fees of the next block: ``base_fee`` in wei per gas, ``blob_base_fee`` per blob gas."""

    base_fee: int = 0
    blob_base_fee: int = 0


def rank(caps: FeeCaps, arrival: int, fees: NextFees) -> Rank:
    """Returns the rank of a transaction.

    ``caps``: the lowest fee caps among this and the sender's earlier transactions.
    """
    value = min(caps.tip, caps.fee - fees.base_fee)
    if caps.blob is not None and caps.blob < fees.blob_base_fee:
        value = min(value, caps.blob - fees.blob_base_fee)
    return value, -arrival


def lowest_of(candidates: Iterable[PooledTransaction], fees: NextFees) -> PooledTransaction | None:
    """Returns the transaction to evict from a short list.

    Queued transactions are evicted before executable ones.
    """
    return min(
        candidates,
        key=lambda item: (item.subpool is EXECUTABLE, rank(item.lowest_caps, item.arrival, fees)),
        default=None,
    )


class EvictionHeap:
    """The transactions of one subpool. Finds the lowest rank at any base fee; ignores blob fees.

    The rank is ``min(tip, fee cap - base fee)``. So the lowest rank is the lower of the lowest tip
    and the lowest fee cap minus the base fee. Two heaps, by tip and by fee cap, suffice for every
    base fee. Stale entries are removed when they reach the top.
    """

    def __init__(self, subpool: Subpool, refresh: Callable[[PooledTransaction], None]) -> None:
        """Creates the heap. ``refresh`` updates the ``lowest_caps`` of a transaction.

        These caps may rise when blocks include earlier transactions of the sender.
        """
        self.subpool = subpool
        self.count = 0
        self._refresh = refresh
        self._by_tip: list[tuple[int, int, PooledTransaction]] = []
        self._by_cap: list[tuple[int, int, PooledTransaction]] = []

    def add(self, pooled: PooledTransaction) -> None:
        """Adds a transaction that enters the subpool."""
        pooled.subpool = self.subpool
        self.count += 1
        self.push(pooled)

    def push(self, pooled: PooledTransaction) -> None:
        """Ranks a transaction of the subpool again. Needed whenever its ``lowest_caps`` fall."""
        caps = pooled.lowest_caps
        heapq.heappush(self._by_tip, (caps.tip, -pooled.arrival, pooled))
        heapq.heappush(self._by_cap, (caps.fee, -pooled.arrival, pooled))
        if len(self._by_tip) > 2 * self.count + MAX_STALE:
            live = {e[1]: e[2] for e in self._by_tip if e[2].subpool is self.subpool}.values()
            self._by_tip = [(item.lowest_caps.tip, -item.arrival, item) for item in live]
            self._by_cap = [(item.lowest_caps.fee, -item.arrival, item) for item in live]
            heapq.heapify(self._by_tip)
            heapq.heapify(self._by_cap)

    def remove(self, pooled: PooledTransaction, target: Subpool) -> None:
        """Removes a transaction that moves to ``target``. Its heap entries become stale."""
        pooled.subpool = target
        self.count -= 1

    def lowest(self, fees: NextFees) -> PooledTransaction | None:
        """Returns the transaction with the lowest rank, or None if the subpool is empty."""
        by_tip = self._top(self._by_tip, lambda caps: caps.tip)
        by_cap = self._top(self._by_cap, lambda caps: caps.fee)
        candidates = [item for item in (by_tip, by_cap) if item is not None]
        return min(
            candidates, key=lambda item: rank(item.lowest_caps, item.arrival, fees), default=None
        )

    def lowest_first(self, fees: NextFees) -> Generator[PooledTransaction, None, None]:
        """Yields transactions by rank, lowest first.

        Close the iterator before changing the heap.
        """
        taken: list[PooledTransaction] = []
        try:
            while (pooled := self.lowest(fees)) is not None:
                taken.append(pooled)
                # so that the heap skips the entries of this transaction
                pooled.subpool = NO_SUBPOOL
                yield pooled
        finally:
            for pooled in taken:
                pooled.subpool = self.subpool
                self.push(pooled)

    def _top(
        self, heap: list[tuple[int, int, PooledTransaction]], price: Callable[[FeeCaps], int]
    ) -> PooledTransaction | None:
        while heap:
            found, order, pooled = heap[0]
            if pooled.subpool is not self.subpool:
                heapq.heappop(heap)
                continue
            self._refresh(pooled)
            current = price(pooled.lowest_caps)
            if current == found:
                return pooled
            heapq.heapreplace(heap, (current, order, pooled))
        return None
