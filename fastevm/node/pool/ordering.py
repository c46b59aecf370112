"""Orders executable transactions by effective tip, as the builder includes them."""

import heapq
from enum import IntEnum

from fastevm.node.pool.pooled_transaction import PooledTransaction
from fastevm.node.pool.run_times import LONG_SECONDS, SLOW_SECONDS, RunTimes


class Lane(IntEnum):
    """Groups of transactions. A slice includes all transactions of a lane before the next lane.

    CANNOT_PAY: the fee cap is below the base fee, so the transaction is never included.
    """

    USUAL = 0
    SLOW = 1
    LONG = 2
    CANNOT_PAY = 3


class OrderedByPrice:
    """The first executable transaction of each sender, ordered by effective tip at one base fee.

    ``by_time``: slow transactions come after the others, and only `pop_long` returns long ones. A
    transaction that has left the pool stays in the heap until it is popped. The caller skips such a
    transaction.
    """

    def __init__(self, run_times: RunTimes) -> None:
        self.run_times = run_times
        self.base_fee = 0
        # order by arrival instead of by tip, among those that cover the base fee
        self.by_arrival = False
        self.by_time = False
        self._heap: list[tuple[Lane, int, int, PooledTransaction]] = []
        self._long: list[tuple[Lane, int, int, PooledTransaction]] = []
        self._set_aside: list[PooledTransaction] = []

    def rebuild(self, base_fee: int, heads: list[PooledTransaction], *, by_time: bool) -> None:
        """Replaces all entries with these transactions at this base fee (wei per gas)."""
        self.base_fee, self.by_time = base_fee, by_time
        self._set_aside.clear()
        entries = [self._entry(head) for head in heads]
        self._heap = [entry for entry in entries if entry[0] is not Lane.LONG]
        self._long = [entry for entry in entries if entry[0] is Lane.LONG]
        heapq.heapify(self._heap)
        heapq.heapify(self._long)

    def push(self, head: PooledTransaction) -> None:
        """Adds a transaction."""
        entry = self._entry(head)
        heapq.heappush(self._long if entry[0] is Lane.LONG else self._heap, entry)

    def _entry(self, head: PooledTransaction) -> tuple[Lane, int, int, PooledTransaction]:
        tip = head.effective_tip(self.base_fee)
        return self._lane(head, tip), 0 if self.by_arrival else -tip, head.arrival, head

    def _lane(self, head: PooledTransaction, tip: int) -> Lane:
        if tip < 0:
            return Lane.CANNOT_PAY
        if not self.by_time:
            return Lane.USUAL
        seconds = self.run_times.expected(head.transaction, head.sender)
        if head.is_long or seconds > LONG_SECONDS:
            return Lane.LONG
        return Lane.SLOW if seconds > SLOW_SECONDS and not self.by_arrival else Lane.USUAL

    def pop(self) -> PooledTransaction | None:
        """Removes and returns the transaction with the highest effective tip, the oldest among
        equals.

        Returns None if no transaction can pay the base fee.
        """
        if not self._heap or self._heap[0][0] is Lane.CANNOT_PAY:
            return None
        return heapq.heappop(self._heap)[3]

    def pop_long(self) -> PooledTransaction | None:
        """Removes and returns the long transaction with the highest tip, or returns None."""
        return heapq.heappop(self._long)[3] if self._long else None

    def set_aside(self, head: PooledTransaction) -> None:
        """Leaves a transaction out until `restore`."""
        self._set_aside.append(head)

    def restore(self) -> None:
        """Adds the transactions that were set aside."""
        for head in self._set_aside:
            self.push(head)
        self._set_aside.clear()

    def __len__(self) -> int:
        return len(self._heap) + len(self._long) + len(self._set_aside)
