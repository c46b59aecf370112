"""The canonical chain: stored blocks, fork choice, genesis, retention."""

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.pending_block import PendingBlock

__all__ = [
    "Chain",
    "HeadChange",
    "PendingBlock",
]
