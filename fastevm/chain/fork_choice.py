"""The fork choice rule: which of two branches is canonical, and what a new head changes."""

from __future__ import annotations

from typing import NamedTuple

from fastevm.chain.block_entry import BlockEntry
from fastevm.core.execution.types import Block


class HeadChange(NamedTuple):
    """The blocks that left the canonical chain with a new head, and those that joined it.

    ``removed`` runs from the old head downwards, ``added`` upwards to the new head.
    """

    removed: tuple[Block, ...]
    added: tuple[Block, ...]


def is_preferred(candidate: BlockEntry, head: BlockEntry) -> bool:
    """Whether the branch that ends in ``candidate`` becomes canonical in place of that of ``head``.

    Before the merge the greater total difficulty wins, the first seen among equals. After it the
    longer branch wins, the last seen among equals. A block after the merge wins over one before.
    """
    if candidate.is_merged != head.is_merged:
        return candidate.is_merged
    if candidate.is_merged:
        return candidate.block.number >= head.block.number
    return candidate.total_difficulty > head.total_difficulty
