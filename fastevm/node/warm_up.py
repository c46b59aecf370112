"""A block that nobody gets, built so that the first real one finds its code loaded."""

from __future__ import annotations

import time
from contextlib import suppress

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import InvalidTransaction
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.sliced_block import open_child_block

GAS_LIMIT = 100_000  # of that transaction


def rehearse(producer: BlockProducer, address: bytes, private_key: bytes) -> None:
    """Seal a child of the head with one transaction and drop it; neither chain nor pool changes.

    An account, by address (20 bytes) and key (32), sends to itself; the block is empty when it has
    no funds.
    """
    chain = producer.chain
    with producer.lock:
        head = chain.head
        attributes = producer.attributes(int(time.time()))
        block = open_child_block(chain, attributes, attempt=0, parent=head)
    transaction = Transaction.build(
        nonce=chain.layer_of(head.hash).nonce(address), to=address, value=0, data=b"\x00",
        gas_limit=GAS_LIMIT, gas_price=block.header.base_fee_per_gas or 0,
    )  # fmt: skip
    with suppress(InvalidTransaction):
        block.add(transaction.sign(private_key))
    block.seal()
