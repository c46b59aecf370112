"""Drafts the header of a block before its execution and completes it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastevm.core.execution.arbitrum.header import child_header
from fastevm.core.execution.block.block_access_list import access_list_hash
from fastevm.core.execution.block.block_result import RESULT_FIELDS, BlockResult
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
    LATER_FIELDS,
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
) -> Header:
    """Returns the draft of a child of ``parent`` at ``timestamp`` (seconds) under the child's
    ``schedule``.

    ``gas_limit`` defaults to the parent's; its bounds are not checked. Roots, bloom and gas used
    are those of an empty block until the block is sealed. On chains of the OP Stack, the fee
    parameters in the extra data are the parent's unless ``extra_data`` contains others. On Arbitrum
    the header has the form of the parent's, and ``extra_data`` and ``prev_randao`` are ignored.
    """
    rules = schedule.parameters
    if rules["fee_parameters_version"] and FeeParameters.read(extra_data) is None:
        extra_data = next_extra_data(parent, schedule)
    later: dict[str, Any] = {"parent_beacon_block_root": parent_beacon_block_root}
    if rules["has_base_fee"]:
        later["base_fee_per_gas"] = next_base_fee(parent, schedule)
    if rules["has_blobs"]:
        later["excess_blob_gas"] = next_excess_blob_gas(parent, schedule)
    draft = Header(
        parent_hash=parent.hash,
        coinbase=coinbase,
        difficulty=child_difficulty(parent, schedule, timestamp),
        number=parent.number + 1,
        gas_limit=elastic_gas_limit(parent, schedule) if gas_limit is None else gas_limit,
        timestamp=timestamp,
        extra_data=extra_data,
        mix_hash=prev_randao,
        **later_fields(schedule, later, parent),
    )
    return child_header(draft, parent) if rules["arbos_version"] else draft


def later_fields(
    schedule: ForkSchedule, given: Mapping[str, Any], parent: Header | None = None
) -> dict[str, Any]:
    """Returns the header fields of ``schedule`` that Frontier did not have, by name.

    Takes values from ``given``. For a missing value or None, returns the value of an empty block on
    ``parent``.
    """
    fields: dict[str, Any] = {}
    for row in LATER_FIELDS:
        if not schedule.parameters[row.flag]:
            continue
        value = given.get(row.name)
        if value is None and row.counts:
            before = None if parent is None else getattr(parent, row.name)
            value = None if before is None else before + 1
        fields[row.name] = row.empty if value is None else value
    return fields


def sealed_header(body: Block, result: BlockResult) -> Header:
    """Returns the header of a block, completed from body and result."""
    return replace(
        body.header,
        ommers_hash=ommers_hash(body),
        transactions_root=transactions_root(body),
        block_access_list_hash=(
            None if result.access_list is None else access_list_hash(result.access_list)
        ),
        **{name: getattr(result, name) for name in RESULT_FIELDS},
    )
