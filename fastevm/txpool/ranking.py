"""Two lazily cleaned heaps over waiting transactions: who is next, and who goes first when full."""

import heapq

from fastevm.txpool.pooled import Pooled

SLACK = 64  # stale entries that a heap may hold beside as many as there are live ones


class Offers:
    """The first executable transaction of each sender, by what it pays at one base fee.

    Entries of transactions that have left stay until they come up; ``pop`` gives them too, and the
    caller skips what is no longer true.
    """

    def __init__(self) -> None:
        self.base_fee = 0
        self._heap: list[tuple[int, int, Pooled]] = []
        self._aside: list[Pooled] = []

    def rebuild(self, base_fee: int, heads: list[Pooled]) -> None:
        """Begin anew with these transactions at this base fee (wei per gas)."""
        self.base_fee = base_fee
        self._aside.clear()
        self._heap = [(-head.effective_tip(base_fee), head.arrival, head) for head in heads]
        heapq.heapify(self._heap)

    def push(self, head: Pooled) -> None:
        """Add a transaction."""
        heapq.heappush(self._heap, (-head.effective_tip(self.base_fee), head.arrival, head))

    def pop(self) -> Pooled | None:
        """The best payer, then who came first; None when nobody pays the base fee."""
        if not self._heap or self._heap[0][0] > 0:
            return None
        return heapq.heappop(self._heap)[2]

    def put_aside(self, head: Pooled) -> None:
        """Do not offer this one again before ``restore``."""
        self._aside.append(head)

    def restore(self) -> None:
        """Offer again what was put aside."""
        for head in self._aside:
            self.push(head)
        self._aside.clear()

    def __len__(self) -> int:
        return len(self._heap) + len(self._aside)


class Cheapest:
    """The transactions of one part of the pool, by what they offer, lowest first."""

    def __init__(self, side: int) -> None:
        self.side = side
        self.count = 0
        self._heap: list[tuple[int, int, int, Pooled]] = []

    def enter(self, pooled: Pooled) -> None:
        """Count a transaction that now waits on this side."""
        pooled.side = self.side
        self.count += 1
        heapq.heappush(self._heap, (pooled.tip, pooled.cap, -pooled.arrival, pooled))
        if len(self._heap) > 2 * self.count + SLACK:
            self._heap = [entry for entry in self._heap if entry[3].side == self.side]
            # One that left and came back has two entries; both are true and one is enough.
            self._heap = list({entry[2]: entry for entry in self._heap}.values())
            heapq.heapify(self._heap)

    def leave(self, pooled: Pooled, side: int) -> None:
        """Count one less; its entry goes when it comes up."""
        pooled.side = side
        self.count -= 1

    def lowest(self) -> Pooled | None:
        """Who offers least, and came last among equals."""
        while self._heap:
            pooled = self._heap[0][3]
            if pooled.side == self.side:
                return pooled
            heapq.heappop(self._heap)
        return None
