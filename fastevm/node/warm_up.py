"""Builds a block and drops it, so that the code is loaded before the first real block."""

from __future__ import annotations

import time
from contextlib import suppress

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import InvalidTransaction
from fastevm.node.production.block_producer import BlockProducer
from fastevm.node.production.sliced_block import open_child_block

GAS_LIMIT = 100_000  # gas limit of the block's transaction


def warm_up(producer: BlockProducer, address: bytes, private_key: bytes) -> None:
    """Seals a child of the head with one transaction and drops it. Chain and pool do not change.

    The account at ``address`` (20 bytes, key of 32 bytes) sends to itself. If the account has no
    funds, the block is empty. Returns immediately if the producer is in use, because that use loads
    the code too.
    """
    chain = producer.chain
    if not producer.lock.acquire(blocking=False):
        return
    try:
        head = chain.head
        attributes = producer.attributes(int(time.time()))
        block = open_child_block(chain, attributes, attempt=0, parent=head)
    finally:
        producer.lock.release()
    transaction = Transaction.build(
        nonce=chain.layer_of(head.hash).nonce(address), to=address, value=0, data=b"\x00",
        gas_limit=GAS_LIMIT, gas_price=block.header.base_fee_per_gas or 0,
    )  # fmt: skip
    with suppress(InvalidTransaction):
        block.add(transaction.sign(private_key))
    block.seal()
