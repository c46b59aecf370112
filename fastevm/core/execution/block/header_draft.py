"""The header of a block before its execution, and with what follows from that."""

from __future__ import annotations

from fastevm.core.execution.block.block_access_list import access_list_hash
from fastevm.core.execution.block.block_result import BlockResult
from fastevm.core.execution.block.fees import (
    FeeParameters,
    elastic_gas_limit,
    next_base_fee,
    next_excess_blob_gas,
    next_extra_data,
)
from fastevm.core.execution.block.validation import ommers_hash, transactions_root
from fastevm.core.execution.pow.difficulty import child_difficulty
from fastevm.core.execution.types import (
    EMPTY_LIST_HASH,
    EMPTY_ROOT,
    ZERO_ADDRESS,
    ZERO_HASH,
    Block,
    Header,
)
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule


def draft_header(
    parent: Header,
    schedule: ForkSchedule,
    *,
    timestamp: int,
    coinbase: bytes = ZERO_ADDRESS,
    gas_limit: int | None = None,
    extra_data: bytes = b"",
    prev_randao: bytes = ZERO_HASH,
    parent_beacon_block_root: bytes = ZERO_HASH,
    slot_number: int | None = None,
) -> Header:
    """The draft of a child of ``parent`` at ``timestamp`` (seconds) under the child's ``schedule``.

    ``gas_limit`` is the parent's by default; its bounds are not checked here. Roots, bloom and gas
    used are those of an empty block until the block is sealed. Fee parameters in the extra data
    (OP stack) are the parent's unless ``extra_data`` is such data. ``slot_number``: one more.
    """
    rules = schedule.parameters
    if rules["fee_parameters_version"] and FeeParameters.read(extra_data) is None:
        extra_data = next_extra_data(parent, schedule)
    has_blobs = bool(rules["has_blobs"])
    return Header(
        parent_hash=parent.hash,
        coinbase=coinbase,
        difficulty=child_difficulty(parent, schedule, timestamp),
        number=parent.number + 1,
        gas_limit=elastic_gas_limit(parent, schedule) if gas_limit is None else gas_limit,
        timestamp=timestamp,
        extra_data=extra_data,
        mix_hash=prev_randao,
        base_fee_per_gas=next_base_fee(parent, schedule) if rules["has_base_fee"] else None,
        withdrawals_root=EMPTY_ROOT if rules["has_withdrawals"] else None,
        blob_gas_used=0 if has_blobs else None,
        excess_blob_gas=next_excess_blob_gas(parent, schedule) if has_blobs else None,
        parent_beacon_block_root=parent_beacon_block_root if rules["has_beacon_root"] else None,
        requests_hash=ZERO_HASH if rules["has_requests"] else None,
        block_access_list_hash=EMPTY_LIST_HASH if rules["has_block_access_list"] else None,
        slot_number=next_slot(parent, slot_number) if rules["has_slot_number"] else None,
    )


def next_slot(parent: Header, given: int | None = None) -> int:
    """The slot of a child: ``given``, or the one after the parent's; 0 where that has none."""
    if given is not None:
        return given
    return 0 if parent.slot_number is None else parent.slot_number + 1


def sealed_header(body: Block, result: BlockResult) -> Header:
    """The header of a block whose own is a draft, with everything that follows from its body."""
    return replace(
        body.header,
        ommers_hash=ommers_hash(body),
        transactions_root=transactions_root(body),
        withdrawals_root=result.withdrawals_root,
        state_root=result.state_root,
        receipts_root=result.receipts_root,
        logs_bloom=result.logs_bloom,
        gas_used=result.gas_used,
        blob_gas_used=result.blob_gas_used,
        requests_hash=result.requests_hash,
        block_access_list_hash=(
            None if result.access_list is None else access_list_hash(result.access_list)
        ),
    )
