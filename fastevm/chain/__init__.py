"""The canonical chain: stored blocks, fork choice, genesis, retention."""

from fastevm.chain.chain import Chain

__all__ = [
    "Chain",
]
