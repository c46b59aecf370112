"""Nodes whose chain begins at a block of another node's chain."""

from fastevm.primitives.late_names import late_names

__all__ = [
    "LAG_SECONDS",
    "LocalPending",
    "PartialFollower",
    "TransactionState",
    "forked_chain",
    "forked_node",
]

# A node that forks nothing asks for none of them.
__getattr__ = late_names(
    __name__,
    {
        "LAG_SECONDS": "partial_follower",
        "LocalPending": "local_pending",
        "PartialFollower": "partial_follower",
        "TransactionState": "transaction_state",
        "forked_chain": "start",
        "forked_node": "from_fork",
    },
)
