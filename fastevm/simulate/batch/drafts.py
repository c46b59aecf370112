"""Drafts the header of the block in which bundles run."""

from typing import Any

from fastevm.core.execution.block.header_draft import draft_header
from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import BlockOverrides
from fastevm.core.spec.schedule import ForkSchedule


def draft_of(
    parent: Header,
    schedule: ForkSchedule,
    timestamp: int,
    overrides: BlockOverrides,
    *,
    validation: bool,
) -> Header:
    """Returns the draft header of a child of ``parent``.

    Each field comes from the overrides, or is inherited, or follows from the rules. ``timestamp``
    is in seconds. Without ``validation`` the base fee is 0 unless it is overridden.
    """
    chosen: dict[str, Any] = {
        "coinbase": parent.coinbase if overrides.fee_recipient is None else overrides.fee_recipient,
        "gas_limit": parent.gas_limit if overrides.gas_limit is None else overrides.gas_limit,
    }
    if overrides.prev_randao is not None:
        chosen["prev_randao"] = overrides.prev_randao
    header = draft_header(parent, schedule, timestamp=timestamp, **chosen)
    changes: dict[str, Any] = {}
    if not schedule.parameters["proof_of_stake"]:
        changes["difficulty"] = parent.difficulty
    if header.base_fee_per_gas is not None and overrides.base_fee_per_gas is not None:
        changes["base_fee_per_gas"] = overrides.base_fee_per_gas
    elif header.base_fee_per_gas is not None and not validation:
        changes["base_fee_per_gas"] = 0
    return replace(header, **changes)
