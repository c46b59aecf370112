"""Nodes whose chain begins at a block of another node's chain."""

from fastevm.node.remote.local_pending import LocalPending
from fastevm.node.remote.partial_follower import LAG_SECONDS, PartialFollower
from fastevm.node.remote.start import forked_chain
from fastevm.node.remote.transaction_state import TransactionState

__all__ = [
    "LAG_SECONDS",
    "LocalPending",
    "PartialFollower",
    "TransactionState",
    "forked_chain",
]
