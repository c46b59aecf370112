"""Resets a development node to a fork, or to a chain that is not forked."""

from __future__ import annotations

import os
from collections.abc import Callable

from fastevm.core.primitives.replace import replace
from fastevm.fork.block_choice import BlockLike
from fastevm.node.development import INSTANCE_SIZE, NoReset
from fastevm.node.node import Node
from fastevm.node.remote.chain_start import ChainStart
from fastevm.node.remote.options import ForkOptions


class ChainReset(NoReset):
    """Replaces the chain of ``node``.

    ``forked`` fetches the start of a fork, ``unforked`` returns the start of a development chain.
    """

    def __init__(
        self,
        node: Node,
        forked: Callable[[ForkOptions], ChainStart],
        unforked: Callable[[], ChainStart],
    ) -> None:
        self.node, self._forked, self._unforked = node, forked, unforked
        self.instance = os.urandom(INSTANCE_SIZE)

    def to_fork(self, url: str | None = None, block: BlockLike | None = None) -> None:
        """Forks the chain of the node at ``url`` at ``block``.

        None selects the newest block, and the URL of the last fork. Raises ForkError, and
        ValueError for an invalid or missing address, or an invalid block.
        """
        fork = self.node.history
        known = None if fork is None else fork.options
        if url is None and known is None:
            raise ValueError("jsonRpcUrl: this chain is not forked from any")
        if known is None:
            known = ForkOptions(urls=())
        wanted = known if url is None else known.for_request(url)
        wanted = replace(wanted, transaction=None, chain_id=None)
        self._begin(self._forked(replace(wanted, block="latest" if block is None else block)))

    def to_development(self) -> None:
        """Starts a development chain with its genesis."""
        self._begin(self._unforked())

    def _begin(self, start: ChainStart) -> None:
        # the builder's thread keeps the block time and the slice interval of the old chain
        before = self.node.config
        config = replace(
            start.config,
            block_time_ms=before.block_time_ms,
            slice_interval_ms=before.slice_interval_ms,
            shares_seconds=before.shares_seconds,
        ).with_parameters(before.parameters)
        replacement = self.node.development.required().replacement
        replacement.begin_anew(config, start.block, start.layer, start.history)
        self.instance = os.urandom(INSTANCE_SIZE)
