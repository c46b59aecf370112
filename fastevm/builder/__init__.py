"""Building blocks slice by slice, on time."""

from fastevm.builder.assembly import BlockAttributes, assemble_block
from fastevm.builder.pending_block import PendingBlock

__all__ = [
    "BlockAttributes",
    "PendingBlock",
    "assemble_block",
]
