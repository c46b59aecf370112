"""The context of handlers: the node, the listener's dialect and limits. Finds blocks by BlockId."""

from typing import Any, Final

from msgspec import Struct, field

from fastevm.chain import PendingBlock
from fastevm.chain.logs import LogIndex
from fastevm.core.execution.types import Block
from fastevm.core.primitives.hex import quantity
from fastevm.node import ForkHistory, Node, is_forecast
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.block_id import EARLIEST, FINALIZED, LATEST, PENDING, SAFE, BlockId
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.workers import Workers, require_worker
from fastevm.rpc.errors import RpcError
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.limits import Limits
from fastevm.rpc.simulator import Simulator
from fastevm.rpc.subscriptions.filters import Filters
from fastevm.rpc.subscriptions.hub import Hub
from fastevm.rpc.traffic import TrafficBudget
from fastevm.rpc.view import View
from fastevm.tracing import SpoolQuota

RECENT_VIEWS = 16
EPOCHS_BELOW: Final = {SAFE: 1, FINALIZED: 2}  # epochs between the head and the block of a tag


class Context(Struct, frozen=True, kw_only=True):
    """The objects that all requests of one listener share."""

    node: Node
    dialect: Dialect
    limits: Limits
    simulator: Simulator
    client_version: str
    freshness: Freshness
    hub: Hub
    log_index: LogIndex
    filters: Filters[Any]
    workers: Workers
    namespaces: frozenset[str] | None = None  # namespaces that are served; None: all
    contracts: ContractFiles = field(default_factory=ContractFiles)
    trace_room: SpoolQuota = field(default_factory=lambda: SpoolQuota(Limits().traces_size))
    traffic: TrafficBudget = field(default_factory=lambda: TrafficBudget(Limits().traffic_size))
    # lowest tips of a block's transactions in wei, by block hash
    least_tips: dict[bytes, list[int]] = field(default_factory=dict)
    _newest: dict[str, View] = field(default_factory=dict)  # newest view by tag: latest and pending
    _recent: dict[bytes, View] = field(default_factory=dict)  # views by block hash

    def pending_view(self) -> View | None:
        """Return the view of the pending block, or None if it is too old or does not exist.

        A node that builds blocks on demand returns the block that it would build now.
        """
        pending = self.freshness.pending() or self.node.next_block()
        if pending is None:
            return None
        view = self._newest.get(PENDING)
        if view is None or view.pending is not pending:
            view = self._newest[PENDING] = View.of_pending(self.node, pending)
        return view

    def view_of(self, block: Block) -> View:
        """Return the view of a stored block. The last few views are cached."""
        view, amendments = self._recent.get(block.hash), self.node.chain.amendments
        if view is None or view.amendments != amendments:
            if len(self._recent) >= RECENT_VIEWS:
                self._recent.clear()
            view = self._recent[block.hash] = View(self.node, block, amendments=amendments)
        return view

    def latest_view(self) -> View:
        """Return the view of the canonical head."""
        chain = self.node.chain
        head, amendments = chain.head, chain.amendments
        view = self._newest.get(LATEST)
        if view is None or view.block is not head or view.amendments != amendments:
            view = self._newest[LATEST] = View(self.node, head, amendments=amendments)
        return view

    def pending_blocks(self) -> tuple[PendingBlock, ...]:
        """Return the pre-confirmed blocks that are not canonical yet, oldest first."""
        pending = self.freshness.pending()
        return () if pending is None else tuple(pending.chain())

    def pending_views(self) -> tuple[View, ...]:
        """Return views of the pre-confirmed blocks; empty on a node that does not pre-confirm."""
        if not self.node.pre_confirms:
            return ()
        return tuple(View.of_pending(self.node, block) for block in self.pending_blocks())

    def find(self, block_id: BlockId) -> View | None:
        """Return the view of the block that ``block_id`` names; None if there is no such block.

        Without pre-confirmed state ``pending`` means the latest block. ``safe`` and ``finalized``
        are one and two epochs below the head (``Node.slots_in_an_epoch``, as in anvil). If no other
        node can reorganise the chain, an epoch has a length of 0, so both tags mean the head. With
        block times of milliseconds there are no slices: ``pending`` is a forecast for calls only,
        and methods that return a block use the latest block.

        Raises HeldUpstream for the fork block and earlier blocks.
        """
        found = self.found(block_id)
        if found is not None and found.pending is not None and is_forecast(found.pending):
            found = self.latest_view()
        if found is not None and self.node.history is not None:
            genesis = self.node.chain.genesis
            # only the header of the fork block is stored
            if found.pending is None and found.block is genesis:
                raise HeldUpstream(quantity(genesis.number))
        return found

    def found(self, block_id: BlockId) -> View | None:
        """Return the view of a block, which may be the fork block, for reads of its state."""
        tag = block_id.tag
        if tag is None or tag == EARLIEST:
            block = self._stored(block_id)
            return None if block is None else self.view_of(block)
        if tag == PENDING:
            return self.pending_view() or self.latest_view()
        if tag in EPOCHS_BELOW and self.node.slots_in_an_epoch:
            return self._below_head(self.number_of(block_id))
        return self.latest_view()

    def number_of(self, block_id: BlockId, head: int | None = None) -> int:
        """Return the number of a block given by number or tag, whether or not the block exists.

        ``pending`` counts as ``latest``. ``earliest`` is the first block of the chain, which on a
        fork is block 0 of the upstream. ``head`` is the number of the newest block, if the caller
        knows it.
        """
        if block_id.number is not None:
            return block_id.number
        chain = self.node.chain
        first = chain.genesis.number if self.node.history is None else 0
        if block_id.tag == EARLIEST:
            return first
        epochs = EPOCHS_BELOW.get(block_id.tag or LATEST, 0)
        newest = chain.head.number if head is None else head
        return max(newest - epochs * self.node.slots_in_an_epoch, first)

    def _below_head(self, number: int) -> View | None:
        try:
            return self.found(BlockId(number=number))
        except HeldUpstream:  # ask by number: the tag names a different block at the upstream
            raise HeldUpstream(quantity(number)) from None

    def view(self, block_id: BlockId) -> View:
        """Return the view of a block for reads of its state. Raises RpcError if none exists."""
        if block_id.tag == LATEST:
            return self.latest_view()
        found = self.found(block_id)
        if found is not None:
            return found
        head, number = self.node.chain.head.number, block_id.number
        if number is not None and number > head:
            raise RpcError("above_head", head=head, number=number)
        known_by = "header_not_found" if block_id.hash is None else "header_for_hash_not_found"
        raise RpcError(known_by)

    def _stored(self, block_id: BlockId) -> Block | None:
        chain = self.node.chain
        if self.node.history is not None:
            self._check_held(self.node.history, block_id)
        if block_id.hash is not None:
            block = chain.block_by_hash(block_id.hash)
            if block is not None and block_id.require_canonical:
                self._check_canonical(block)
            return block
        if block_id.number is not None:
            return chain.block_by_number(block_id.number)
        return chain.genesis

    def _check_held(self, history: ForkHistory, block_id: BlockId) -> None:
        """Raise HeldUpstream if a block is before the first block of a forked chain."""
        if block_id.number is not None:
            held = block_id.number < history.number
        elif block_id.hash is not None:
            held = not self.node.chain.knows(block_id.hash)
            if held:
                require_worker(is_long=True)
                held = history.has_block(block_id.hash)
        else:  # the tag earliest
            held = True
        if held:
            raise HeldUpstream

    def _check_canonical(self, block: Block) -> None:
        if self.node.chain.canonical_hash(block.number) != block.hash:
            raise RpcError("not_canonical")
