"""Lets a development node begin anew, on a fork or on a chain of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from fastevm.chain.config import ChainConfig
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.core.state.layer import Layer
from fastevm.fork.block_choice import BlockLike
from fastevm.node.remote.chain_start import ChainStart
from fastevm.node.remote.fork_history import ForkHistory
from fastevm.node.remote.options import ForkOptions

INSTANCE_SIZE = 32


class Restartable(Protocol):
    """The node that begins anew."""

    @property
    def fork(self) -> ForkHistory | None: ...
    @property
    def config(self) -> ChainConfig: ...
    def begin_anew(
        self, config: ChainConfig, block: Block, layer: Layer, fork: ForkHistory | None
    ) -> None: ...


class ChainReset:
    """What lets ``node`` begin anew.

    ``forked`` fetches the start of a fork, ``unforked`` makes that of a development chain.
    """

    def __init__(
        self,
        node: Restartable,
        forked: Callable[[ForkOptions], ChainStart],
        unforked: Callable[[], ChainStart],
    ) -> None:
        self.node, self._forked, self._unforked = node, forked, unforked
        self.instance = os.urandom(INSTANCE_SIZE)

    def to_fork(self, url: str | None = None, block: BlockLike | None = None) -> None:
        """Begin anew at a block (the newest) of another node's chain (the one it is forked from).

        ForkError; ValueError for a wrong address or block, and without any.
        """
        fork = self.node.fork
        known = None if fork is None else fork.options
        if url is None and known is None:
            raise ValueError("jsonRpcUrl: this chain is not forked from any")
        if known is None:
            known = ForkOptions(urls=())
        urls = known.urls if url is None else (url,)
        wanted = replace(known, urls=urls, transaction=None, chain_id=None)
        self._begin(self._forked(replace(wanted, block="latest" if block is None else block)))

    def to_development(self) -> None:
        """Begin anew with the genesis of a development chain."""
        self._begin(self._unforked())

    def _begin(self, start: ChainStart) -> None:
        before = self.node.config  # whose times are those of the builder's thread
        config = replace(
            start.config,
            block_time_ms=before.block_time_ms,
            slice_interval_ms=before.slice_interval_ms,
            shares_seconds=before.shares_seconds,
        ).with_parameters(before.parameters)
        self.node.begin_anew(config, start.block, start.layer, start.history)
        self.instance = os.urandom(INSTANCE_SIZE)
