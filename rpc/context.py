"""What a handler works with: the node, its listener's dialect and limits, blocks by selector."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from fastevm.logindex import LogIndex
from fastevm.rpc.backend import Layer, Node, PendingBlock, Simulator
from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.workers import Workers, weigh
from fastevm.rpc.errors import RpcError
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.limits import Limits
from fastevm.rpc.selectors import EARLIEST, LATEST, PENDING, Selector
from fastevm.simulate import StateView
from fastevm.types import Block, Receipt
from fastevm.wire.receipts import ReceiptWriter

if TYPE_CHECKING:
    from fastevm.rpc.subscriptions.filters import Filters
    from fastevm.rpc.subscriptions.hub import Hub

ZERO_HASH = bytes(32)
RECENT_VIEWS = 16
ANCESTORS = 256  # hashes that BLOCKHASH reaches back


@dataclass(slots=True, eq=False)
class View:
    """One block as requests see it: a canonical or side block, or the pending one.

    What it is asked for it keeps: the block, its state and its rules do not change.
    """

    node: Node
    block: Block
    pending: PendingBlock | None = None
    _layer: Layer | None = None
    _state: StateView | None = None
    _receipts: tuple[Receipt, ...] | None = None
    _first_logs: list[int] | None = None
    _writer: ReceiptWriter | None = None
    amendments: int = 0  # of states of the chain, when this one was looked at

    @classmethod
    def of_pending(cls, node: Node, pending: PendingBlock) -> "View":
        """The view of a pre-confirmed block."""
        header = pending.header
        withdrawals = None if header.withdrawals_root is None else ()
        return cls(node, Block(header, pending.transactions, (), withdrawals), pending)

    @property
    def hash(self) -> bytes:
        """The block's hash; 32 zero bytes under ``pending``, whose hash is not known yet."""
        return ZERO_HASH if self.pending is not None else self.block.hash

    @property
    def layer(self) -> Layer:
        """The state after the block."""
        if self._layer is None:
            self._layer = (
                self.node.chain.layer_of(self.block.hash)
                if self.pending is None
                else self.pending.layer
            )
        return self._layer

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The outcomes of its transactions."""
        if self._receipts is None:
            if self.pending is not None:
                self._receipts = self.pending.receipts
            else:
                chain, block_hash = self.node.chain, self.block.hash
                if not chain.in_memory(block_hash):
                    weigh(len(self.block.transactions))
                self._receipts = chain.receipts_of(block_hash)
        return self._receipts

    @property
    def writer(self) -> ReceiptWriter:
        """What writes its receipts and logs."""
        if self._writer is None:
            header = self.block.header
            self._writer = ReceiptWriter(self.hash, header.number, header.timestamp)
        return self._writer

    def first_log(self, index: int) -> int:
        """The index, in the block, of the first log of transaction ``index``."""
        if self._first_logs is None:
            counts = [len(receipt.logs) for receipt in self.receipts]
            self._first_logs = list(accumulate(counts, initial=0))
        return self._first_logs[index]

    def state(self) -> StateView:
        """Return the state to execute on, with the block's own environment."""
        if self._state is None:
            self._state = self._made_state()
        return self._state

    def _made_state(self) -> StateView:
        chain, header = self.node.chain, self.block.header
        if self.pending is None:
            schedule = chain.schedule_of(header.hash)
        else:
            parent = chain.block_by_hash(header.parent_hash)
            schedule = chain.schedule_for_child(parent or chain.head, header.timestamp)
        return StateView(
            header=header,
            block_hash=header.hash,
            layer=self.layer,
            ancestors=self._ancestors(),
            schedule=schedule,
            config=self.node.config,
        )

    def _ancestors(self) -> tuple[bytes, ...]:
        """Return the hashes that BLOCKHASH may ask for, newest first.

        The hash of a pre-confirmed block is known as the parent hash of the one after it.
        """
        chain, header = self.node.chain, self.block.header
        hashes = [header.parent_hash]
        if self.pending is not None:
            hashes = [block.header.parent_hash for block in self.pending.chain()][::-1]
        if chain.block_by_hash(hashes[-1]) is None:
            return ()
        return (*hashes[:-1], *chain.ancestors(hashes[-1]))[:ANCESTORS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that is the same for all requests of one listener."""

    node: Node
    dialect: Dialect
    limits: Limits
    simulator: Simulator
    client_version: str
    freshness: Freshness
    hub: "Hub"
    log_index: LogIndex
    filters: "Filters"
    workers: Workers
    _newest: dict[str, View] = field(default_factory=dict)  # of the tags latest and pending
    _recent: dict[bytes, View] = field(default_factory=dict)  # by hash

    def pending_view(self) -> View | None:
        """Return the pending block, or None when there is no pre-confirmed state to be served."""
        pending = self.freshness.pending()
        if pending is None:
            return None
        view = self._newest.get(PENDING)
        if view is None or view.pending is not pending:
            view = self._newest[PENDING] = View.of_pending(self.node, pending)
        return view

    def view_of(self, block: Block) -> View:
        """Return a stored block; the views of the last few are kept."""
        view, amendments = self._recent.get(block.hash), self.node.chain.amendments
        if view is None or view.amendments != amendments:
            if len(self._recent) >= RECENT_VIEWS:
                self._recent.clear()
            view = self._recent[block.hash] = View(self.node, block, amendments=amendments)
        return view

    def latest_view(self) -> View:
        """Return the head of the canonical chain."""
        chain = self.node.chain
        head, amendments = chain.head, chain.amendments
        view = self._newest.get(LATEST)
        if view is None or view.block is not head or view.amendments != amendments:
            view = self._newest[LATEST] = View(self.node, head, amendments=amendments)
        return view

    def pending_blocks(self) -> tuple[PendingBlock, ...]:
        """Return all blocks that are pre-confirmed and not canonical yet, oldest first."""
        pending = self.freshness.pending()
        return () if pending is None else tuple(pending.chain())

    def pending_views(self) -> tuple[View, ...]:
        """Return the same as views."""
        return tuple(View.of_pending(self.node, block) for block in self.pending_blocks())

    def find(self, selector: Selector) -> View | None:
        """Return the block that ``selector`` means; None if there is no such block.

        Without pre-confirmed state ``pending`` means the latest block. ``safe`` and ``finalized``
        are the latest block too: what the chain accepted, no other node can take back.
        """
        tag = selector.tag
        if tag is None or tag == EARLIEST:
            block = self._stored(selector)
            return None if block is None else self.view_of(block)
        if tag == PENDING:
            return self.pending_view() or self.latest_view()
        return self.latest_view()

    def view(self, selector: Selector) -> View:
        """Return the block whose state ``selector`` means; an error if there is no such block."""
        if selector.tag == LATEST:
            return self.latest_view()
        found = self.find(selector)
        if found is not None:
            return found
        known_by = "header_not_found" if selector.hash is None else "header_for_hash_not_found"
        raise RpcError(known_by)

    def _stored(self, selector: Selector) -> Block | None:
        chain = self.node.chain
        if selector.hash is not None:
            block = chain.block_by_hash(selector.hash)
            if block is not None and selector.require_canonical:
                self._check_canonical(block)
            return block
        if selector.number is not None:
            return chain.block_by_number(selector.number)
        return chain.genesis

    def _check_canonical(self, block: Block) -> None:
        if self.node.chain.canonical_hash(block.number) != block.hash:
            raise RpcError("not_canonical")
