"""The start of a chain: its constants, its first block and the state after it."""

from __future__ import annotations

from msgspec import Struct

from fastevm.chain.config import ChainConfig
from fastevm.core.execution.types import Block
from fastevm.core.state.layer import Layer
from fastevm.node.remote.fork_history import ForkHistory


class ChainStart(Struct, frozen=True):
    """The start of a chain: its constants, its first block and the state after that block.

    ``history``: the upstream of a forked chain, or None.
    """

    config: ChainConfig
    block: Block
    layer: Layer
    history: ForkHistory | None = None
