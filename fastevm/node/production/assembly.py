"""Builds a block on any known parent from given attributes and transactions."""

from __future__ import annotations

from collections.abc import Iterable

from fastevm.chain.chain import Chain
from fastevm.core.execution.block.block import BlockBuilder
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.fees import gas_limit_towards
from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.errors import InvalidBlock
from fastevm.node.production.attributes import BlockAttributes

DEFAULT_GAS_TARGET = 60_000_000


def assemble_block(
    chain: Chain,
    parent: Block,
    attributes: BlockAttributes,
    transactions: Iterable[Transaction],
    *,
    gas_target: int = DEFAULT_GAS_TARGET,
) -> tuple[Block, BlockResult]:
    """Executes the transactions in order and seals the block. Does not change the chain.

    ``transactions`` come after those of the attributes. The gas limit moves from that of the parent
    towards ``gas_target``. Raises InvalidTransaction for the first transaction that cannot be
    included, and InvalidBlock if the timestamp is not after the parent's.
    """
    if attributes.timestamp < parent.header.timestamp + chain.config.least_timestamp_step:
        raise InvalidBlock(
            parent.number + 1,
            "timestamp",
            expected=f"more than {parent.header.timestamp}",
            found=attributes.timestamp,
        )
    schedule = chain.schedule_for_child(parent, attributes.timestamp)
    draft = draft_header(
        parent.header,
        schedule,
        timestamp=attributes.timestamp,
        coinbase=attributes.coinbase,
        gas_limit=gas_limit_towards(gas_target, parent.header, schedule),
        extra_data=attributes.extra_data,
        prev_randao=attributes.prev_randao,
        parent_beacon_block_root=attributes.parent_beacon_block_root,
    )
    builder = _builder(chain, parent, draft, schedule, attributes)
    builder.begin()
    for transaction in (*attributes.transactions, *transactions):
        builder.add(transaction)
    return builder.seal()


def _builder(
    chain: Chain,
    parent: Block,
    draft: Header,
    schedule: ForkSchedule,
    attributes: BlockAttributes,
) -> BlockBuilder:
    return BlockBuilder(
        chain.state_before(parent.header, draft.timestamp),
        draft,
        schedule,
        chain_id=chain.config.chain_id,
        deposit_contract=chain.config.deposit_contract,
        ancestors=chain.ancestors(parent.hash),
        withdrawals=attributes.withdrawals if draft.withdrawals_root is not None else None,
    )
