"""Eviction: which transaction leaves first when a part of the pool is full."""

import heapq

from fastevm.node.pool.pooled_transaction import PooledTransaction, Subpool

MAX_STALE = 64  # stale heap entries, beside as many as there are live ones


class EvictionHeap:
    """The transactions of one subpool by price, lowest first; cleaned lazily."""

    def __init__(self, subpool: Subpool) -> None:
        self.subpool = subpool
        self.count = 0
        self._heap: list[tuple[int, int, int, PooledTransaction]] = []

    def add(self, pooled: PooledTransaction) -> None:
        """A transaction enters the subpool."""
        pooled.subpool = self.subpool
        self.count += 1
        heapq.heappush(self._heap, (pooled.tip_cap, pooled.fee_cap, -pooled.arrival, pooled))
        if len(self._heap) > 2 * self.count + MAX_STALE:
            live = [entry for entry in self._heap if entry[3].subpool is self.subpool]
            # A transaction that left and came back has two equal entries.
            self._heap = list({entry[2]: entry for entry in live}.values())
            heapq.heapify(self._heap)

    def remove(self, pooled: PooledTransaction, target: Subpool) -> None:
        """A transaction moves to ``target``; its heap entry is dropped when it comes up."""
        pooled.subpool = target
        self.count -= 1

    def lowest(self) -> PooledTransaction | None:
        """The transaction with the lowest price, the last to arrive among equals."""
        while self._heap:
            pooled = self._heap[0][3]
            if pooled.subpool is self.subpool:
                return pooled
            heapq.heappop(self._heap)
        return None
