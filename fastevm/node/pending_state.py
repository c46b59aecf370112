"""The pending state of a node, as a view for `fastevm.simulate` in the same process."""

from __future__ import annotations

from fastevm.chain.chain import Chain
from fastevm.chain.pending_block import PendingBlock
from fastevm.simulate import StateView


def pending_state(chain: Chain, pending: PendingBlock | None) -> StateView:
    """Returns a view of the pending block if it is above the head, else of the head."""
    head = chain.head
    if pending is None or pending.header.number <= head.number:
        header, layer = head.header, chain.layer_of(head.hash)
        schedule, ancestors = chain.schedule_of(head.hash), chain.ancestors(head.hash)[1:]
    else:
        header, layer = pending.header, pending.layer
        schedule = chain.schedule_for_child(head, header.timestamp)
        hashes = [block.header.parent_hash for block in pending.chain()][::-1]
        ancestors = [*hashes[:-1], *chain.ancestors(hashes[-1])]
    return StateView(
        header=header,
        block_hash=header.hash,
        layer=layer,
        ancestors=ancestors,
        schedule=schedule,
        config=chain.config,
    )
