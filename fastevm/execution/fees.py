"""Gas limit bounds, base fee, excess blob gas and blob base fee of a block, from its parent."""

from __future__ import annotations

from fastevm.spec.schedule import ForkSchedule
from fastevm.types import Header

MAX_GAS_LIMIT = 2**63 - 1
"""Gas limits fit a signed 64-bit integer in every client."""

_HIGHEST_EXPONENT = 177  # e ** 177 < 2 ** 256 < e ** 178


def next_base_fee(parent: Header, schedule: ForkSchedule) -> int:
    """The base fee in wei that a child of ``parent`` must have under ``schedule`` (EIP-1559)."""
    rules = schedule.parameters
    if parent.base_fee_per_gas is None:
        return int(rules["initial_base_fee"])
    target = parent.gas_limit // int(rules["elasticity_multiplier"])
    fee, denominator = parent.base_fee_per_gas, int(rules["base_fee_change_denominator"])
    if target == 0 or parent.gas_used == target:
        return fee
    step = fee * abs(parent.gas_used - target) // target // denominator
    return fee + max(step, 1) if parent.gas_used > target else fee - step


def gas_limit_bounds(parent: Header, schedule: ForkSchedule) -> tuple[int, int]:
    """The least and the greatest gas limit of a child of ``parent``, both allowed.

    The limit differs from the parent's by less than 1/1024 (Yellow Paper, section 4.3.4). At the
    first block with a base fee the parent's is multiplied by ``elasticity_multiplier`` (EIP-1559).
    """
    rules = schedule.parameters
    base = elastic_gas_limit(parent, schedule)
    reach = base // int(rules["gas_limit_divisor"])
    return max(base - reach + 1, int(rules["min_gas_limit"])), min(base + reach - 1, MAX_GAS_LIMIT)


def elastic_gas_limit(parent: Header, schedule: ForkSchedule) -> int:
    """The parent's gas limit as its child sees it: doubled at the first block with a base fee."""
    rules = schedule.parameters
    if rules["has_base_fee"] and parent.base_fee_per_gas is None:
        return parent.gas_limit * int(rules["elasticity_multiplier"])
    return parent.gas_limit


def gas_limit_towards(target: int, parent: Header, schedule: ForkSchedule) -> int:
    """The gas limit of a child of ``parent`` as near to ``target`` as the bounds allow."""
    least, greatest = gas_limit_bounds(parent, schedule)
    return min(max(target, least), max(greatest, least))


def next_excess_blob_gas(parent: Header, schedule: ForkSchedule) -> int:
    """The excess blob gas of a child of ``parent`` under its ``schedule`` (EIP-4844, EIP-7918)."""
    rules = schedule.parameters
    excess, used = parent.excess_blob_gas or 0, parent.blob_gas_used or 0
    per_blob = int(rules["blob_gas_per_blob"])
    target, most = int(rules["blob_target"]), int(rules["blob_max"])
    if excess + used < target * per_blob:
        return 0
    reserve_cost = int(rules["blob_reserve_cost"])
    if reserve_cost:
        reserve_price = reserve_cost * (parent.base_fee_per_gas or 0)
        if reserve_price > per_blob * blob_base_fee(excess, schedule):
            return excess + used * (most - target) // most
    return excess + used - target * per_blob


def blob_base_fee(excess_blob_gas: int, schedule: ForkSchedule) -> int:
    """The price of blob gas in wei at this excess (EIP-4844, get_base_fee_per_blob_gas).

    OverflowError if the price may exceed 256 bits: no chain reaches that, and the series would be
    very long.
    """
    rules = schedule.parameters
    fraction = int(rules["blob_base_fee_fraction"])
    if excess_blob_gas > fraction * _HIGHEST_EXPONENT:
        raise OverflowError(
            f"the blob base fee at excess blob gas {excess_blob_gas} exceeds 256 bits"
        )
    return fake_exponential(int(rules["blob_min_base_fee"]), excess_blob_gas, fraction)


def fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """``factor * e ** (numerator / denominator)`` by Taylor's series in integers (EIP-4844).

    ``denominator`` must be positive. The rounding errors are part of the definition.
    """
    term, total, i = factor * denominator, 0, 1
    while term > 0:
        total += term
        term = term * numerator // (denominator * i)
        i += 1
    return total // denominator
