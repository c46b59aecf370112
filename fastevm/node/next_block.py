"""The next block of a node that mines on demand. ``pending`` shows it.

The block is built on request and is not a commitment. Mining reuses the block if nothing has
changed and the pool was empty.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from typing import Any, Final

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.state.remote import resolved
from fastevm.errors import InvalidTransaction
from fastevm.node.production.block_producer import MAX_FETCHES, BlockProducer
from fastevm.node.production.deadline import DeadlineTimer
from fastevm.node.production.missing_state import NEEDS_STATE
from fastevm.node.production.sliced_block import SlicedBlock, open_child_block

MAX_TRANSACTIONS: Final = 1_000  # most pool transactions in the block
FILL_SECONDS: Final = 0.1  # most seconds of execution


class NextBlock:
    """Builds the next block from the pool at the clock's time. Caches the block."""

    def __init__(self, producer: BlockProducer) -> None:
        self.producer = producer
        self._timer = DeadlineTimer()
        self._kept: tuple[Any, PendingBlock] | None = None

    def of_now(self) -> PendingBlock | None:
        """Returns the next block, or None while a block is built or if the producer builds slices.

        Never waits for a lock. Raises StateNotKnown on an event loop, and ForkError.
        """
        if self.producer.block_time is not None and not self.producer.paused:
            return None
        if not self.producer.lock.acquire(blocking=False):
            return None
        try:
            return self._renewed()
        finally:
            self.producer.lock.release()

    def _renewed(self) -> PendingBlock:
        producer = self.producer
        chain, pool = producer.chain, producer.pool
        head = chain.head
        attributes = producer.attributes(int(time.time()))
        waiting = frozenset(pool.hashes()) if pool.executable_count else None
        known = (producer.opens_with(attributes), waiting)
        if self._kept is not None and self._kept[0] == known:
            return self._kept[1]
        block = resolved(
            chain.layer_of(head.hash), lambda: open_child_block(chain, attributes, attempt=0)
        )
        if waiting is not None:
            self._fill(block)
        pending = block.close_slice()
        if waiting is None:
            producer.keep_spare(attributes, block)
        self._kept = (known, pending)
        return pending

    def _fill(self, block: SlicedBlock) -> None:
        """Adds transactions while there is time and gas. Skips those that cannot be included."""
        deadline = time.monotonic() + FILL_SECONDS
        self._timer.arm(deadline, block.cancel)
        try:
            for transaction in self._best_first(block.header.base_fee_per_gas or 0):
                if block.count >= MAX_TRANSACTIONS or time.monotonic() >= deadline:
                    return
                try:
                    deadline += self._add(block, transaction, deadline)
                except InvalidTransaction:
                    continue
        finally:
            self._timer.disarm()

    def _add(self, block: SlicedBlock, transaction: Transaction, deadline: float) -> float:
        """Adds a transaction. On a fork, returns the seconds spent on fetching its state."""
        state, waited = self.producer.missing_state, 0.0
        for _ in range(MAX_FETCHES if state.is_remote else 0):
            try:
                block.add(transaction)
            except InvalidTransaction as error:
                if error.code != NEEDS_STATE:
                    raise
            else:
                return waited
            self._timer.disarm()
            started = time.monotonic()
            state.fetch(transaction)
            waited += time.monotonic() - started
            block.resume()
            self._timer.arm(deadline + waited, block.cancel)
        block.add(transaction)
        return waited

    def _best_first(self, base_fee: int) -> Iterator[Transaction]:
        """Yields the executable transactions by tip.

        Transactions of one sender are in order of nonce.
        """
        queues = [
            [by_nonce[nonce] for nonce in sorted(by_nonce, reverse=True)]
            for by_nonce in self.producer.pool.executable().values()
        ]
        heads = [(-_tip(queue[-1], base_fee), index) for index, queue in enumerate(queues) if queue]
        heapq.heapify(heads)
        while heads:
            tip, index = heapq.heappop(heads)
            transaction = queues[index].pop()
            if tip <= 0:
                yield transaction
            if queues[index]:
                heapq.heappush(heads, (-_tip(queues[index][-1], base_fee), index))


def _tip(transaction: Transaction, base_fee: int) -> int:
    """Returns the effective tip in wei per gas.

    Negative if the transaction cannot pay the base fee.
    """
    left: int = transaction.max_fee_per_gas - base_fee
    return min(left, transaction.max_priority_fee_per_gas)
