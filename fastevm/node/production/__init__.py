"""Building blocks slice by slice, on time."""

from fastevm.chain.pending_block import PendingBlock
from fastevm.node.production.assembly import assemble_block
from fastevm.node.production.attributes import BlockAttributes
from fastevm.node.production.deposits import Deposit, DepositRefused
from fastevm.node.production.miner import MAX_INTERVAL, MIN_INTERVAL

__all__ = [
    "MAX_INTERVAL",
    "MIN_INTERVAL",
    "BlockAttributes",
    "Deposit",
    "DepositRefused",
    "PendingBlock",
    "assemble_block",
]
