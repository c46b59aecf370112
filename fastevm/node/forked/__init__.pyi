"""The names of the package."""

from fastevm.node.forked.from_fork import forked_node
from fastevm.node.forked.local_pending import LocalPending
from fastevm.node.forked.partial_follower import LAG_SECONDS, PartialFollower
from fastevm.node.forked.start import forked_chain
from fastevm.node.forked.transaction_state import TransactionState

__all__ = [
    "LAG_SECONDS",
    "LocalPending",
    "PartialFollower",
    "TransactionState",
    "forked_chain",
    "forked_node",
]
