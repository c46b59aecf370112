"""Executes the slices of a feed above the canonical head. The result is the pending block.

After a gap, an unexpected block or a different result, the pending block is withdrawn. Then
``pending`` reads ``latest`` until the feed starts a block that fits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import RLock

from msgspec import Struct

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.irregular_changes import state_before
from fastevm.chain.metrics import MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH, Block
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.deadline import Deadline, time_limit
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import resolved
from fastevm.errors import FastevmError, InvalidTransaction, TransactionDecodeError
from fastevm.node.following.feed_checks import (
    Divergence,
    check_attributes,
    check_draft,
    check_gas,
    check_outcome,
    check_parent,
    draft_of,
    unverified,
    with_withdrawals,
)
from fastevm.node.following.feed_sequence import EarlySlices, Verdict, classify, is_copy
from fastevm.node.production.missing_state import NEEDS_STATE, MissingState
from fastevm.node.production.sliced_block import SlicedBlock
from fastevm.rpc_types.feed import FeedBase, FeedSlice

log = logging.getLogger(__name__)

MAX_DEPTH = 3  # pending blocks above the canonical head
SLICE_SECONDS = 2.0  # longest execution of a slice: ten slice intervals
# after a slower slice, the feed is ignored for this long, so that blocks can be imported
REST_SECONDS = 30.0

Publish = Callable[[PendingBlock | None, bool], None]


class _FollowedBlock(Struct):
    """A pending block and the messages that it consists of."""

    base: FeedBase
    ancestors: list[bytes]
    sliced: SlicedBlock
    messages: list[FeedSlice]
    pending: PendingBlock
    finished: Layer | None = None


class _SliceLimit:
    """Stops the execution of a slice; see `time_limit`."""

    def __init__(self, sliced: SlicedBlock) -> None:
        self.sliced = sliced

    def set_deadline(self, deadline: Deadline) -> SlicedBlock:
        """Makes the deadline call the block's ``cancel``. Returns the block."""
        return self.sliced


class FeedFollower:
    """Keeps the pending blocks of a feed consistent with a chain.

    Calls ``publish(pending, notify)`` with each new pending block, or with None to withdraw it.
    ``notify`` is False if the pending block only moved to another parent. ``lock`` guards additions
    to the chain.
    """

    def __init__(
        self, chain: Chain, publish: Publish, *, lock: RLock, metrics: MetricsRegistry
    ) -> None:
        self.chain, self.publish, self.lock, self.metrics = chain, publish, lock, metrics
        self._blocks: list[_FollowedBlock] = []
        self._early = EarlySlices()
        self._received: FeedSlice | None = None
        # by number: pending blocks that do not fit the feed's next block
        self._doubted: dict[int, PendingBlock] = {}
        self._accepted_at = time.monotonic()
        self._rests_until = 0.0  # monotonic seconds
        self._deadline = Deadline()  # cancels the execution of all slices
        self.missing_state = MissingState()
        chain.on_head(self._head_moved)

    @property
    def latest(self) -> FeedSlice | None:
        """The last accepted message, or None if there is no pending state."""
        return self._blocks[-1].messages[-1] if self._blocks else None

    @property
    def age(self) -> float:
        """The seconds since a message last became pending state, or since the start."""
        return time.monotonic() - self._accepted_at

    @property
    def unverified(self) -> tuple[str, ...] | None:
        """Names of pending-block values that cannot be verified.

        None if there is no pending block.
        """
        # copied in one step, because the lock may be held for a whole slice
        newest = self._blocks[-1:]
        return unverified(newest[0].messages[-1], newest[0].sliced.schedule) if newest else None

    def receive(self, message: FeedSlice) -> Verdict:
        """Processes the next message of the feed, unless the feed pauses after a slow slice."""
        if time.monotonic() < self._rests_until:
            self.metrics.count("feed_ignored_total")
            return Verdict.RESTING
        with self.lock, self._deadline.active():
            self.metrics.count("feed_messages_received_total")
            # A repeated message is a duplicate even if nothing is pending.
            repeated = message == self._received or self._has(message)
            self._received = message
            verdict = Verdict.DUPLICATE if repeated else classify(self.latest, message)
            self.metrics.count(f'feed_sequence_total{{verdict="{verdict.value}"}}')
            if verdict is Verdict.DUPLICATE:
                return verdict
            if verdict.invalidates:
                self.withdraw(verdict.value)
            self._process(message)
            return verdict

    def _has(self, message: FeedSlice) -> bool:
        """Returns whether exactly this message is part of a pending block."""
        return any(
            block.base.block_number == message.block_number
            and message.index < len(block.messages)
            and is_copy(block.messages[message.index], message)
            for block in self._blocks
        )

    def start(self) -> None:
        """Allows execution of slices again after `stop`."""
        self._deadline = Deadline()

    def stop(self) -> None:
        """Cancels the execution of the current slice and of all slices until `start`."""
        self._deadline.cancel()

    def interrupted(self) -> None:
        """Drops early messages after an interruption, because the next message may not follow
        them.
        """
        with self.lock:
            self._early.clear()

    def withdraw(self, reason: str) -> None:
        """Drops all pending blocks."""
        with self.lock:
            self._early.clear()
            if self._blocks:
                log.info("pending state withdrawn: %s", reason)
                self.metrics.count("pending_withdrawn_total")
                self._blocks.clear()
                self.publish(None, False)

    # --- slices -----------------------------------------------------------------------------------

    def _process(self, message: FeedSlice) -> None:
        """Executes a message whose parent is known.

        Keeps a message whose parent may still arrive.
        """
        head = self.chain.head
        if message.block_number <= head.number:
            self.metrics.count("feed_stale_total")
        elif self._blocks and message.index:
            self._extend(message)
        elif message.base is not None and self._has_parent(message.base):
            self._start(message, message.base)
        elif self._early.keep(message, head.number):
            self.metrics.count("feed_early_total")
        else:
            self.metrics.count("feed_ignored_total")

    def _has_parent(self, base: FeedBase) -> bool:
        if self._blocks:
            return (
                base.block_number == self._blocks[-1].base.block_number + 1
                and len(self._blocks) < MAX_DEPTH
            )
        return base.parent_hash == self.chain.head.hash

    def _start(self, message: FeedSlice, base: FeedBase) -> None:
        try:
            self._blocks.append(self._begin(message, base))
        except (FastevmError, ValueError) as error:
            doubted = {block.base.block_number: block.pending for block in self._blocks}
            self._diverged(error)
            if doubted:  # the block may fit the canonical parent instead of the pending one
                self._doubted = doubted
                self._early.keep(message, self.chain.head.number)
        else:
            self._publish_slice(self._blocks[-1].pending)

    def _publish_slice(self, pending: PendingBlock) -> None:
        self._accepted_at = time.monotonic()
        self.publish(pending, True)

    def _extend(self, message: FeedSlice) -> None:
        block = self._blocks[-1]
        try:
            block.pending = self._executed(block.sliced, message)
        except (FastevmError, ValueError) as error:
            self._diverged(error)
        else:
            block.messages.append(message)
            self._publish_slice(block.pending)

    def _diverged(self, error: Exception) -> None:
        log.warning("the feed cannot be followed: %s", error)
        self.metrics.count("feed_divergence_total")
        self.withdraw(str(error))

    def _begin(self, message: FeedSlice, base: FeedBase) -> _FollowedBlock:
        """Executes the first slice of a block, on the previous pending block or the head."""
        chain = self.chain
        if self._blocks:
            before = self._blocks[-1]
            check_parent(before.messages[-1], base)
            if before.finished is None:
                before.finished = before.sliced.finish().layer
            parent, layer, previous = before.pending.header, before.finished, before.pending
            # Only the feed knows the hash of a pending parent.
            ancestors = [base.parent_hash, *before.ancestors]
        else:
            parent, layer, previous = chain.head.header, chain.layer_of(chain.head.hash), None
            ancestors = chain.ancestors(chain.head.hash)
        schedule = self._schedule_at(base.block_number, base.timestamp)
        draft = draft_of(base, parent, schedule)
        check_draft(draft, parent, schedule, chain.config)
        transactions = self._decoded(message)
        before_fork = self._schedule_at(parent.number, parent.timestamp)
        check_attributes(transactions, base.block_number, schedule, before_fork)
        sliced = resolved(
            layer,
            lambda: SlicedBlock(
                chain,
                state_before(chain.config.activations, layer, parent, base.timestamp),
                draft,
                schedule,
                ancestors=ancestors,
                payload_id=message.payload_id,
                previous=previous,
            ),
        )
        pending = self._executed(sliced, message, transactions)
        return _FollowedBlock(base, ancestors, sliced, [message], pending)

    def _schedule_at(self, number: int, timestamp: int) -> ForkSchedule:
        return self.chain.config.activations.at(number, timestamp, after_merge=True)

    def _decoded(self, message: FeedSlice) -> list[Transaction]:
        try:
            return [Transaction.decode(raw) for raw in message.transactions]
        except TransactionDecodeError as error:
            raise Divergence(f"slice {message.id}: {error}") from error

    def _executed(
        self,
        sliced: SlicedBlock,
        message: FeedSlice,
        transactions: list[Transaction] | None = None,
    ) -> PendingBlock:
        """Executes a slice. Raises Divergence if the message differs from the result."""
        if message.post_exec_tx is not None:
            raise Divergence(f"slice {message.id}: refunds after execution are not known here")
        with time_limit(_SliceLimit(sliced), SLICE_SECONDS):
            for transaction in self._decoded(message) if transactions is None else transactions:
                try:
                    check_gas(transaction, sliced.header.gas_limit - sliced.gas_used)
                    self._add(sliced, transaction)
                except InvalidTransaction as error:
                    reason = str(error)
                    if error.code == "cancelled":
                        reason = f"not executed after {SLICE_SECONDS:g} s"
                        self._rests_until = time.monotonic() + REST_SECONDS
                    raise Divergence(f"slice {message.id}: {reason}") from error
        pending = with_withdrawals(sliced.close_slice(), message)
        check_outcome(pending, message, sliced.schedule)
        # Without a state root the hash is provisional, because builders fill in the header
        # differently.
        is_provisional = message.state_root == ZERO_HASH != message.block_hash
        if is_provisional and message.block_hash != pending.header.hash:
            self.metrics.count("feed_provisional_hash_mismatch_total")
        return pending

    def _add(self, sliced: SlicedBlock, transaction: Transaction) -> None:
        """Executes a transaction. Fetches missing state first."""
        while True:
            try:
                sliced.add(transaction)
            except InvalidTransaction as error:
                if error.code != NEEDS_STATE or not self.missing_state.is_remote:
                    raise
                self.missing_state.fetch(transaction)
            else:
                return

    # --- canonical blocks -------------------------------------------------------------------------

    def _head_moved(self, change: HeadChange) -> None:
        with self.lock:
            self._reconcile(change)
            self._drain()

    def _reconcile(self, change: HeadChange) -> None:
        """Drops pending blocks that are canonical.

        Executes the other pending blocks on the new head.
        """
        shown = self._doubted | {block.base.block_number: block.pending for block in self._blocks}
        self._doubted = {}
        for block in change.added:
            if block.number in shown and not agrees(shown[block.number], block):
                self.metrics.count("reconcile_mismatch_total")
        if not self._blocks:
            return
        head = self.chain.head
        rest = [block for block in self._blocks if block.base.block_number > head.number]
        self._blocks.clear()
        if rest and rest[0].base.parent_hash == head.hash:
            self._rebuild(rest)
        elif rest:
            self.metrics.count("pending_withdrawn_total")
        else:
            self.metrics.count("reconcile_catch_up_total")
        self.publish(self._blocks[-1].pending if self._blocks else None, False)

    def _rebuild(self, rest: list[_FollowedBlock]) -> None:
        try:
            for block in rest:
                fresh = self._begin(block.messages[0], block.base)
                self._blocks.append(fresh)
                for message in block.messages[1:]:
                    fresh.pending = self._executed(fresh.sliced, message)
                    fresh.messages.append(message)
                shown = replace(fresh.pending, published=block.pending.published)
                fresh.pending = replace(shown, first_new=block.pending.first_new)
        except (FastevmError, ValueError) as error:
            log.warning("pending blocks could not be moved onto the new head: %s", error)
            self.metrics.count("feed_divergence_total")
            self._blocks.clear()
        else:
            self.metrics.count("reconcile_rebased_total")

    def _drain(self) -> None:
        """Executes the early messages of the block after the head."""
        if self._blocks:
            return
        for message in self._early.take(self.chain.head.number + 1):
            if classify(self.latest, message) not in (Verdict.START, Verdict.NEXT):
                break
            if message.base is not None and not self._has_parent(message.base):
                break
            self.metrics.count("feed_drained_total")
            self._process(message)


def agrees(pending: PendingBlock, block: Block) -> bool:
    """Returns whether a canonical block has the pre-confirmed transactions, receipts and gas."""
    header = block.header
    return (
        header.gas_used == pending.header.gas_used
        and header.receipts_root == pending.header.receipts_root
        and [transaction.hash for transaction in block.transactions]
        == [transaction.hash for transaction in pending.transactions]
    )
