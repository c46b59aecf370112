"""The fork choice rule, by which `Chain` selects the canonical branch.

`Chain` also carries out the reorganisation.
"""

from __future__ import annotations

from typing import NamedTuple

from fastevm.chain.block_entry import BlockEntry
from fastevm.core.execution.types import Block


class HeadChange(NamedTuple):
    """The blocks that a new head removes from the canonical chain and those that it adds.

    ``removed`` lists blocks from the old head downwards, ``added`` upwards to the new head.
    """

    removed: tuple[Block, ...]
    added: tuple[Block, ...]


def is_preferred(candidate: BlockEntry, head: BlockEntry) -> bool:
    """Returns whether the branch of ``candidate`` becomes canonical in place of that of ``head``.

    Before the merge, the branch with the higher total difficulty wins; between equal branches, the
    one seen first. After the merge, the longer branch wins; between equal branches, the one seen
    last. A block after the merge wins over a block before the merge.
    """
    if candidate.is_merged != head.is_merged:
        return candidate.is_merged
    if candidate.is_merged:
        return candidate.block.number >= head.block.number
    return candidate.total_difficulty > head.total_difficulty
