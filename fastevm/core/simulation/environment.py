"""The block environment of a simulated call: the header's values with overrides applied."""

from typing import Any

from fastevm.core.execution.block.fees import blob_base_fee
from fastevm.core.execution.types import BlockEnvironment
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import (
    NO_BLOCK_OVERRIDES,
    BlockOverrides,
    SimulatePayload,
    SimulationError,
    StateView,
)
from fastevm.core.spec.schedule import ForkSchedule


def environment_of(
    header: Any,
    schedule: ForkSchedule,
    chain_id: int,
    overrides: BlockOverrides,
    *,
    free_gas: bool = False,
    free_blobs: bool = False,
) -> BlockEnvironment:
    """Returns the environment of ``header`` under ``schedule``.

    ``free_gas``: the call offers no gas price, so BASEFEE returns 0. ``free_blobs``: the call
    offers no blob gas price, so BLOBBASEFEE returns 0.
    """
    rules = schedule.parameters
    merged = bool(rules["difficulty_is_randomness"])
    blob_fee = overrides.blob_base_fee or 0
    if rules["has_blobs"] and overrides.blob_base_fee is None:
        blob_fee = blob_base_fee(header.excess_blob_gas or 0, schedule)
    own = BlockEnvironment.of(
        header,
        chain_id=chain_id,
        blob_base_fee=blob_fee if rules["has_blobs"] else 0,
        merged=merged,
        arbos=bool(rules["arbos_version"]),
    )
    if overrides is NO_BLOCK_OVERRIDES and not free_gas and not free_blobs:
        return own
    randomness = overrides.prev_randao
    base_fee = _chosen(overrides.base_fee_per_gas, own.base_fee)
    return replace(
        own,
        coinbase=_chosen(overrides.fee_recipient, own.coinbase),
        number=_chosen(overrides.number, own.number),
        timestamp=_chosen(overrides.time, own.timestamp),
        gas_limit=_chosen(overrides.gas_limit, own.gas_limit),
        difficulty=0 if merged else _chosen(overrides.difficulty, own.difficulty),
        prev_randao=(
            int.from_bytes(randomness, "big") if merged and randomness else own.prev_randao
        ),
        base_fee=0 if free_gas else base_fee,
        header_base_fee=base_fee if free_gas else 0,
        blob_base_fee=0 if free_blobs else own.blob_base_fee,
    )


def overridden(defaults: BlockOverrides, overrides: BlockOverrides) -> BlockOverrides:
    """Returns ``defaults`` with all values of ``overrides`` that are not None."""
    chosen = {
        name: given
        for name in BlockOverrides.__struct_fields__
        if (given := getattr(overrides, name)) is not None
    }
    return replace(defaults, **chosen)


def payload_on(view: StateView, payload: SimulatePayload) -> SimulatePayload:
    """Returns the payload with the block overrides that the view defines for the blocks after its
    block.

    With validation, base fees after the first block are computed from the parent blocks.
    """
    first = view.next_block
    if first is NO_BLOCK_OVERRIDES:
        return payload
    later = replace(first, number=None, time=None)
    if payload.validation:
        later = replace(later, base_fee_per_gas=None, blob_base_fee=None)
    blocks = [
        replace(entry, block_overrides=overridden(later if at else first, entry.block_overrides))
        for at, entry in enumerate(payload.blocks)
    ]
    return replace(payload, blocks=tuple(blocks))


def refuse_block_content(overrides: BlockOverrides) -> None:
    """Raises SimulationError for overrides that only whole simulated blocks support."""
    for name, value in (
        ("beaconRoot", overrides.beacon_root),
        ("withdrawals", overrides.withdrawals),
    ):
        if value is not None:
            raise SimulationError(
                "override", f'block override "{name}" is not supported for this RPC method'
            )


def _chosen(override: Any, default: Any) -> Any:
    return default if override is None else override
