"""A chain that is forked in front of a transaction: the block as far as that is built again."""

from __future__ import annotations

from fastevm.chain.chain import Chain
from fastevm.errors import ForkError
from fastevm.execution.block import BlockBuilder
from fastevm.execution.block_result import BlockResult
from fastevm.fork import RemoteSource
from fastevm.state.remote import settled
from fastevm.types import Block
from fastevm.wire.blocks import block_from_json


def block_of(source: RemoteSource, tx_hash: bytes) -> tuple[Block, int]:
    """The block of a transaction of the upstream, and its index there. ForkError."""
    name = "0x" + tx_hash.hex()
    found = source.request("eth_getTransactionByHash", [name])
    block_hash = None if found is None else found.get("blockHash")
    if block_hash is None:
        raise ForkError(f"{source.endpoint}: no block has the transaction {name}")
    block = block_from_json(source.request("eth_getBlockByHash", [block_hash, True]))
    return block, int(found["transactionIndex"], 16)


def append_replayed(chain: Chain, block: Block, count: int) -> None:
    """Build a child of the head like ``block``, with the first ``count`` of its transactions.

    ForkError; InvalidBlock where they do not fit the state that was fetched.
    """
    if not count:
        return
    parent, header = chain.head, block.header
    schedule = chain.schedule_for_child(parent, header.timestamp)
    layer = chain.layer_of(parent.hash)

    def run() -> tuple[Block, BlockResult]:
        builder = BlockBuilder(
            layer,
            header,
            schedule,
            chain_id=chain.config.chain_id,
            deposit_contract=chain.config.deposit_contract,
            ancestors=chain.ancestors(parent.hash),
            withdrawals=() if header.withdrawals_root is not None else None,
        )
        builder.begin()
        builder.add_all(block.transactions[:count])
        return builder.seal()

    chain.append(*settled(layer, run))
