"""Building blocks slice by slice, on time."""

from fastevm.builder.assembly import assemble_block
from fastevm.builder.attributes import BlockAttributes
from fastevm.builder.miner import MAX_INTERVAL, MIN_INTERVAL
from fastevm.builder.pending_block import PendingBlock
from fastevm.builder.simulated_l1 import Deposit, DepositRefused

__all__ = [
    "MAX_INTERVAL",
    "MIN_INTERVAL",
    "BlockAttributes",
    "Deposit",
    "DepositRefused",
    "PendingBlock",
    "assemble_block",
]
