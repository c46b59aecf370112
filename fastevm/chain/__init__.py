"""The canonical chain: stored blocks, fork choice, genesis, retention, state amendments."""

from fastevm.chain.chain import Chain
from fastevm.chain.fork_choice import HeadChange
from fastevm.chain.pending_block import PendingBlock
from fastevm.core.state.layer_changes import account_change, changed_addresses
from fastevm.core.state.values import AccountChange

__all__ = [
    "AccountChange",
    "Chain",
    "HeadChange",
    "PendingBlock",
    "account_change",
    "changed_addresses",
]
