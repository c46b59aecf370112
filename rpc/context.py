"""What a handler works with: the node, its listener's dialect and limits, blocks by selector."""

from dataclasses import field
from typing import Any

from fastevm.logindex import LogIndex
from fastevm.primitives import dataclass
from fastevm.rpc.backend import History, Node, PendingBlock, Simulator
from fastevm.rpc.before_fork import HeldUpstream
from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.workers import Workers, require_worker
from fastevm.rpc.errors import RpcError
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.limits import Limits
from fastevm.rpc.selectors import EARLIEST, LATEST, PENDING, Selector
from fastevm.rpc.subscriptions.filters import Filters
from fastevm.rpc.subscriptions.hub import Hub
from fastevm.rpc.view import View
from fastevm.tracing import SpoolRoom
from fastevm.types import Block
from fastevm.wire.text.hex import quantity

RECENT_VIEWS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything that is the same for all requests of one listener."""

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
    namespaces: frozenset[str] | None = None  # that are served; None: all
    trace_room: SpoolRoom = field(default_factory=lambda: SpoolRoom(Limits().traces_size))
    least_tips: dict[bytes, list[int]] = field(default_factory=dict)  # of blocks, by hash, in wei
    _newest: dict[str, View] = field(default_factory=dict)  # of the tags latest and pending
    _recent: dict[bytes, View] = field(default_factory=dict)  # by hash

    def pending_view(self) -> View | None:
        """Return the pending block, or None when there is none to be served.

        Where blocks are made on demand it is the block that would be made now.
        """
        pending = self.freshness.pending() or self.node.next_block()
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
        """Return the same as views; none where nobody promises what is pending."""
        if not self.node.pre_confirms:
            return ()
        return tuple(View.of_pending(self.node, block) for block in self.pending_blocks())

    def find(self, selector: Selector) -> View | None:
        """Return the block that ``selector`` means; None if there is no such block.

        Without pre-confirmed state ``pending`` means the latest block. ``safe`` and ``finalized``
        are the latest block too: what the chain accepted, no other node can take back.

        HeldUpstream for the block at which a chain was forked, and for those before it.
        """
        found = self.found(selector)
        if found is not None and self.node.history is not None:
            genesis = self.node.chain.genesis
            if found.pending is None and found.block is genesis:  # its header alone is here
                raise HeldUpstream(quantity(genesis.number))
        return found

    def found(self, selector: Selector) -> View | None:
        """Return the same for its state alone, which of the fork's block is here."""
        tag = selector.tag
        if tag is None or tag == EARLIEST:
            block = self._stored(selector)
            return None if block is None else self.view_of(block)
        if tag == PENDING:
            return self.pending_view() or self.latest_view()
        return self.latest_view()

    def view(self, selector: Selector) -> View:
        """Return the block whose state ``selector`` means; an error if there is no such block.

        HeldUpstream for a block before the one at which a chain was forked.
        """
        if selector.tag == LATEST:
            return self.latest_view()
        found = self.found(selector)
        if found is not None:
            return found
        known_by = "header_not_found" if selector.hash is None else "header_for_hash_not_found"
        raise RpcError(known_by)

    def _stored(self, selector: Selector) -> Block | None:
        chain = self.node.chain
        if self.node.history is not None:
            self._check_held(self.node.history, selector)
        if selector.hash is not None:
            block = chain.block_by_hash(selector.hash)
            if block is not None and selector.require_canonical:
                self._check_canonical(block)
            return block
        if selector.number is not None:
            return chain.block_by_number(selector.number)
        return chain.genesis

    def _check_held(self, history: History, selector: Selector) -> None:
        """HeldUpstream for a block before the first one of a forked chain."""
        if selector.number is not None:
            held = selector.number < history.number
        elif selector.hash is not None:
            held = not self.node.chain.knows(selector.hash)
            if held:
                require_worker(is_long=True)
                held = history.has_block(selector.hash)
        else:  # the earliest one
            held = True
        if held:
            raise HeldUpstream

    def _check_canonical(self, block: Block) -> None:
        if self.node.chain.canonical_hash(block.number) != block.hash:
            raise RpcError("not_canonical")
