"""Ordering: the executable transactions by effective tip, in which the builder includes them."""

import heapq

from fastevm.node.pool.pooled_transaction import PooledTransaction


class OrderedByPrice:
    """The first executable transaction of each sender, by effective tip at one base fee.

    Entries of transactions that left the pool stay until they come up; ``pop`` returns them too,
    and the caller skips them.
    """

    def __init__(self) -> None:
        self.base_fee = 0
        self.by_arrival = False  # whatever the tips are, where they are not negative
        self._heap: list[tuple[int, int, PooledTransaction]] = []
        self._set_aside: list[PooledTransaction] = []

    def rebuild(self, base_fee: int, heads: list[PooledTransaction]) -> None:
        """Replace everything with these transactions at this base fee (wei per gas)."""
        self.base_fee = base_fee
        self._set_aside.clear()
        self._heap = [(*self._rank(head), head) for head in heads]
        heapq.heapify(self._heap)

    def push(self, head: PooledTransaction) -> None:
        """Add a transaction."""
        heapq.heappush(self._heap, (*self._rank(head), head))

    def _rank(self, head: PooledTransaction) -> tuple[int, int]:
        tip = head.effective_tip(self.base_fee)
        return int(tip < 0) if self.by_arrival else -tip, head.arrival

    def pop(self) -> PooledTransaction | None:
        """The highest effective tip, the first to arrive among equals.

        None when no transaction covers the base fee.
        """
        if not self._heap or self._heap[0][0] > 0:
            return None
        return heapq.heappop(self._heap)[2]

    def set_aside(self, head: PooledTransaction) -> None:
        """Leave a transaction out until ``restore``."""
        self._set_aside.append(head)

    def restore(self) -> None:
        """Offer again what was set aside."""
        for head in self._set_aside:
            self.push(head)
        self._set_aside.clear()

    def __len__(self) -> int:
        return len(self._heap) + len(self._set_aside)
