"""Seals the block whose slices the previous process published before it ended."""

from fastevm.chain.chain import Chain
from fastevm.chain.storage.preconfirmed import PreconfirmedBlock
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.unsigned_sender import with_named_sender
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.core.state.remote import resolved
from fastevm.errors import FastevmError
from fastevm.node.production.sliced_block import SlicedBlock


def seal_preconfirmed(
    chain: Chain, preconfirmed: PreconfirmedBlock
) -> tuple[Block, BlockResult] | None:
    """Seals a block with the pre-confirmed transactions.

    Returns None if there are no pre-confirmed transactions, or if the block is not a child of the
    head. Raises FastevmError if the execution gives another result than before.
    """
    head = chain.head
    if preconfirmed.draft.parent_hash != head.hash or not preconfirmed.transactions:
        return None
    return resolved(chain.layer_of(head.hash), lambda: _sealed(chain, head, preconfirmed))


def _sealed(
    chain: Chain, head: Block, preconfirmed: PreconfirmedBlock
) -> tuple[Block, BlockResult]:
    draft = replace(
        preconfirmed.draft,
        gas_used=0,
        blob_gas_used=None if preconfirmed.draft.blob_gas_used is None else 0,
    )
    sliced = SlicedBlock(
        chain,
        chain.layer_of(head.hash),
        draft,
        chain.schedule_for_child(head, draft.timestamp),
        ancestors=chain.ancestors(head.hash),
        payload_id=preconfirmed.payload_id,
    )
    for raw in preconfirmed.transactions:
        sliced.add(with_named_sender(Transaction.decode(raw)))
    block, result = sliced.seal()
    if block.header.receipts_root != preconfirmed.receipts_root:
        raise FastevmError("the receipts root differs from the published one")
    return block, result
