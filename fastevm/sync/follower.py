"""Pre-confirmed state from a feed: its slices are executed here on top of canonical blocks.

Whatever does not fit (a gap, another block than announced, a result that differs) makes the pending
state go away, and ``pending`` means ``latest`` until the feed begins a block that fits again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import RLock

from fastevm.builder.block_maker import BlockMaker
from fastevm.builder.pending import PendingBlock
from fastevm.chain.chain import Chain, HeadChange
from fastevm.chain.metrics import Meters
from fastevm.errors import FastevmError, InvalidTransaction, TransactionDecodeError
from fastevm.execution.fees import next_excess_blob_gas
from fastevm.execution.transaction import Transaction
from fastevm.spec.schedule import ForkSchedule
from fastevm.state.layer import Layer
from fastevm.sync.feed_sequence import EarlySlices, Verdict, judge
from fastevm.types import EMPTY_ROOT, ZERO_HASH, Block, Header
from fastevm.wire.feed import FeedBase, FeedSlice

log = logging.getLogger(__name__)

MAX_DEPTH = 3  # pending blocks above the canonical head

VOID = {Verdict.RESTART, Verdict.GAP, Verdict.INVALID_BLOCK, Verdict.PREDECESSOR}

Publish = Callable[[PendingBlock | None, bool], None]


class Divergence(FastevmError):
    """What was executed here is not what the feed says."""


@dataclass(slots=True)
class _Followed:
    """A pending block and the messages that made it."""

    base: FeedBase
    ancestors: list[bytes]
    maker: BlockMaker
    messages: list[FeedSlice]
    pending: PendingBlock
    finished: Layer | None = None


class Follower:
    """Keeps the pending blocks of a feed in step with a chain.

    ``publish(pending, tell)`` gets each new snapshot, or None; ``tell`` is False when it only moved
    to another base and has no new slice. ``lock`` is the one that guards additions to the chain.
    """

    def __init__(self, chain: Chain, publish: Publish, *, lock: RLock, meters: Meters) -> None:
        self.chain, self.publish, self.lock, self.meters = chain, publish, lock, meters
        self._blocks: list[_Followed] = []
        self._early = EarlySlices()
        self._received: FeedSlice | None = None
        chain.on_head(self._head_moved)

    @property
    def latest(self) -> FeedSlice | None:
        """The message accepted last; None when there is no pending state."""
        return self._blocks[-1].messages[-1] if self._blocks else None

    def receive(self, message: FeedSlice) -> Verdict:
        """Take in the next message of the feed."""
        with self.lock:
            self.meters.count("feed_messages_received_total")
            # The same message again is a repetition even where nothing is pending.
            repeated, self._received = message == self._received, message
            verdict = Verdict.DUPLICATE if repeated else judge(self.latest, message)
            self.meters.count(f'feed_sequence_total{{verdict="{verdict.value}"}}')
            if verdict is Verdict.DUPLICATE:
                return verdict
            if verdict in VOID:
                self.withdraw(verdict.value)
            self._place(message)
            return verdict

    def withdraw(self, reason: str) -> None:
        """There is no pending state any more."""
        with self.lock:
            self._early.clear()
            if self._blocks:
                log.info("pending state withdrawn: %s", reason)
                self.meters.count("pending_withdrawn_total")
                self._blocks.clear()
                self.publish(None, False)

    # --- slices -----------------------------------------------------------------------------------

    def _place(self, message: FeedSlice) -> None:
        """Execute a message where its parent is here, keep it where that may still come."""
        head = self.chain.head
        if message.block_number <= head.number:
            self.meters.count("feed_stale_total")
        elif self._blocks and message.index:
            self._extend(message)
        elif message.base is not None and self._has_parent(message.base):
            self._start(message, message.base)
        elif self._early.keep(message, head.number):
            self.meters.count("feed_early_total")
        else:
            self.meters.count("feed_ignored_total")

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
            self._diverged(error)
        else:
            self.publish(self._blocks[-1].pending, True)

    def _extend(self, message: FeedSlice) -> None:
        block = self._blocks[-1]
        try:
            block.pending = self._executed(block.maker, message)
        except (FastevmError, ValueError) as error:
            self._diverged(error)
        else:
            block.messages.append(message)
            self.publish(block.pending, True)

    def _diverged(self, error: Exception) -> None:
        log.warning("the feed cannot be followed: %s", error)
        self.meters.count("feed_divergence_total")
        self.withdraw(str(error))

    def _begin(self, message: FeedSlice, base: FeedBase) -> _Followed:
        """The first slice of a block, on the pending block before it or on the canonical head."""
        chain = self.chain
        if self._blocks:
            before = self._blocks[-1]
            if before.finished is None:
                before.finished = before.maker.finish().layer
            parent, layer, previous = before.pending.header, before.finished, before.pending
            # The parent's own hash is not known here: the feed names it.
            ancestors = [base.parent_hash, *before.ancestors]
        else:
            parent, layer, previous = chain.head.header, chain.layer_of(chain.head.hash), None
            ancestors = chain.ancestors(chain.head.hash)
        schedule = chain.config.activations.at(base.block_number, base.timestamp, after_merge=True)
        maker = BlockMaker(
            chain,
            layer,
            draft_of(base, parent, schedule),
            schedule,
            ancestors=ancestors,
            payload_id=message.payload_id,
            previous=previous,
        )
        pending = self._executed(maker, message)
        return _Followed(base, ancestors, maker, [message], pending)

    def _executed(self, maker: BlockMaker, message: FeedSlice) -> PendingBlock:
        """Run a slice and compare with what the feed says of it."""
        for raw in message.transactions:
            try:
                maker.add(Transaction.decode(raw))
            except (InvalidTransaction, TransactionDecodeError) as error:
                raise Divergence(f"slice {message.id}: {error}") from error
        pending = maker.slice()
        header = pending.header
        for name, found, expected in (
            ("gas used", header.gas_used, message.gas_used),
            ("receipts root", header.receipts_root, message.receipts_root),
            ("blob gas used", header.blob_gas_used, message.blob_gas_used),
        ):
            if found != expected and expected is not None:
                raise Divergence(f"slice {message.id}: another {name} than announced")
        return pending

    # --- canonical blocks -------------------------------------------------------------------------

    def _head_moved(self, change: HeadChange) -> None:
        with self.lock:
            self._reconcile(change)
            self._drain()

    def _reconcile(self, change: HeadChange) -> None:
        """Drop what is canonical now, and move the rest onto the new head."""
        if not self._blocks:
            return
        canonical = {block.number: block for block in change.added}
        for block in self._blocks:
            found = canonical.get(block.base.block_number)
            if found is not None and not agrees(block.pending, found):
                self.meters.count("reconcile_mismatch_total")
        head = self.chain.head
        rest = [one for one in self._blocks if one.base.block_number > head.number]
        self._blocks.clear()
        if rest and rest[0].base.parent_hash == head.hash:
            self._rebuild(rest)
        elif rest:
            self.meters.count("pending_withdrawn_total")
        else:
            self.meters.count("reconcile_catch_up_total")
        self.publish(self._blocks[-1].pending if self._blocks else None, False)

    def _rebuild(self, rest: list[_Followed]) -> None:
        try:
            for block in rest:
                fresh = self._begin(block.messages[0], block.base)
                self._blocks.append(fresh)
                for message in block.messages[1:]:
                    fresh.pending = self._executed(fresh.maker, message)
                    fresh.messages.append(message)
                shown = replace(fresh.pending, published=block.pending.published)
                fresh.pending = replace(shown, first_new=block.pending.first_new)
        except (FastevmError, ValueError) as error:
            log.warning("pending blocks could not be moved onto the new head: %s", error)
            self.meters.count("feed_divergence_total")
            self._blocks.clear()
        else:
            self.meters.count("reconcile_rebased_total")

    def _drain(self) -> None:
        """Execute the messages that waited for this head."""
        if self._blocks:
            return
        for message in self._early.take(self.chain.head.number + 1):
            if judge(self.latest, message) not in (Verdict.START, Verdict.NEXT):
                break
            if message.base is not None and not self._has_parent(message.base):
                break
            self.meters.count("feed_drained_total")
            self._place(message)


def draft_of(base: FeedBase, parent: Header, schedule: ForkSchedule) -> Header:
    """The draft of the block that a feed has begun on ``parent``."""
    rules = schedule.parameters
    has_blobs = bool(rules["has_blobs"])
    return Header(
        parent_hash=base.parent_hash,
        coinbase=base.fee_recipient,
        number=base.block_number,
        gas_limit=base.gas_limit,
        timestamp=base.timestamp,
        extra_data=base.extra_data,
        mix_hash=base.prev_randao,
        base_fee_per_gas=base.base_fee_per_gas if rules["has_base_fee"] else None,
        withdrawals_root=EMPTY_ROOT if rules["has_withdrawals"] else None,
        blob_gas_used=0 if has_blobs else None,
        excess_blob_gas=next_excess_blob_gas(parent, schedule) if has_blobs else None,
        parent_beacon_block_root=(
            base.parent_beacon_block_root if rules["has_beacon_root"] else None
        ),
        requests_hash=ZERO_HASH if rules["has_requests"] else None,
    )


def agrees(pending: PendingBlock, block: Block) -> bool:
    """Whether a canonical block is what was pre-confirmed: transactions, receipts and gas."""
    header = block.header
    return (
        header.gas_used == pending.header.gas_used
        and header.receipts_root == pending.header.receipts_root
        and [one.hash for one in block.transactions] == [one.hash for one in pending.transactions]
    )
