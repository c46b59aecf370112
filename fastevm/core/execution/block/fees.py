"""Computes gas limit bounds, base fee, excess blob gas and blob base fee from a parent block."""

from __future__ import annotations

from msgspec import Struct

from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import ForkSchedule, schedule_for

MAX_GAS_LIMIT = 2**63 - 1
"""Every client stores gas limits as signed 64-bit integers."""

_HIGHEST_EXPONENT = 177  # e ** 177 < 2 ** 256 < e ** 178


FEE_PARAMETER_SIZES = {1: 9, 2: 17}
"""Size in bytes of extra data with fee parameters, by version."""


class FeeParameters(Struct, frozen=True):
    """The base fee parameters in a header's extra data.

    ``version`` is 1 since Holocene and 2 since Jovian. Jovian adds ``min_base_fee`` in wei. Source:
    OP Stack specification, Holocene and Jovian, "Dynamic EIP-1559 Parameters", "Minimum Base Fee".
    """

    version: int
    denominator: int
    elasticity: int
    min_base_fee: int = 0

    @classmethod
    def read(cls, extra_data: bytes) -> FeeParameters | None:
        """Decodes a header's extra data. Returns None if the extra data has no fee parameters."""
        version = extra_data[0] + 1 if extra_data else 0
        if len(extra_data) != FEE_PARAMETER_SIZES.get(version):
            return None
        numbers = (extra_data[1:5], extra_data[5:9], extra_data[9:])
        return cls(version, *(int.from_bytes(number, "big") for number in numbers))

    def extra_data(self) -> bytes:
        """Returns the extra data with these parameters."""
        data = bytes([self.version - 1])
        data += self.denominator.to_bytes(4, "big") + self.elasticity.to_bytes(4, "big")
        return data if self.version == 1 else data + self.min_base_fee.to_bytes(8, "big")


def fee_parameters(parent: Header, schedule: ForkSchedule) -> FeeParameters:
    """Returns the base fee parameters of a child of ``parent`` under ``schedule``.

    The parameters come from the parent's extra data, or from the fork's constants if the extra data
    has none.
    """
    rules = schedule.parameters
    found = FeeParameters.read(parent.extra_data) if rules["fee_parameters_version"] else None
    if found is not None and 0 not in (found.denominator, found.elasticity):
        return found
    return FeeParameters(
        0, int(rules["base_fee_change_denominator"]), int(rules["elasticity_multiplier"])
    )


def next_extra_data(parent: Header, schedule: ForkSchedule) -> bytes:
    """Returns the parent's fee parameters as extra data, or empty bytes if the rules have none."""
    version = int(schedule.parameters["fee_parameters_version"])
    if version == 0:
        return b""
    found = fee_parameters(parent, schedule)
    return replace(found, version=version).extra_data()


def next_base_fee(parent: Header, schedule: ForkSchedule) -> int:
    """Returns the base fee in wei that a child of ``parent`` must have under ``schedule``
    (EIP-1559).

    On chains of the OP Stack, the parent's extra data set the parameters. From Jovian on, the
    parent's DA footprint counts as gas, and there is a minimum base fee. On Arbitrum, returns the
    parent's base fee; ArbOS computes the real base fee from its gas backlog.
    """
    if parent.base_fee_per_gas is None:
        return int(schedule.parameters["initial_base_fee"])
    if schedule.parameters["arbos_version"]:
        return parent.base_fee_per_gas
    governing = fee_parameters(parent, schedule)
    target, fee = parent.gas_limit // governing.elasticity, parent.base_fee_per_gas
    used = parent.gas_used
    if governing.version == 2:
        used = max(used, parent.blob_gas_used or 0)
    if target != 0 and used != target:
        step = fee * abs(used - target) // target // governing.denominator
        fee = fee + max(step, 1) if used > target else fee - step
    return max(fee, governing.min_base_fee)


def gas_limit_bounds(parent: Header, schedule: ForkSchedule) -> tuple[int, int]:
    """Returns the lowest and the highest gas limit of a child of ``parent``, both inclusive.

    The limit differs from the parent's by less than 1/1024 (Yellow Paper, section 4.3.4). At the
    first block with a base fee, the parent's limit is first multiplied by ``elasticity_multiplier``
    (EIP-1559). On chains of the OP Stack, L1 sets the limit and there are no bounds.
    """
    rules = schedule.parameters
    if rules["has_free_gas_limit"]:
        return 0, MAX_GAS_LIMIT
    base = elastic_gas_limit(parent, schedule)
    reach = base // int(rules["gas_limit_divisor"])
    return max(base - reach + 1, int(rules["min_gas_limit"])), min(base + reach - 1, MAX_GAS_LIMIT)


def elastic_gas_limit(parent: Header, schedule: ForkSchedule) -> int:
    """Returns the parent's gas limit, doubled for the first block with a base fee."""
    rules = schedule.parameters
    if rules["has_base_fee"] and parent.base_fee_per_gas is None:
        return parent.gas_limit * int(rules["elasticity_multiplier"])
    return parent.gas_limit


def gas_limit_towards(target: int, parent: Header, schedule: ForkSchedule) -> int:
    """Returns the gas limit of a child of ``parent`` that is closest to ``target``."""
    least, greatest = gas_limit_bounds(parent, schedule)
    return min(max(target, least), max(greatest, least))


def next_excess_blob_gas(parent: Header, schedule: ForkSchedule) -> int:
    """Returns the excess blob gas of a child of ``parent`` under its ``schedule`` (EIP-4844,
    EIP-7918).
    """
    rules = schedule.parameters
    if not rules["accepts_blobs"]:
        return 0
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


def blob_base_fee(excess_blob_gas: int, schedule: ForkSchedule | str) -> int:
    """Returns the blob base fee in wei (EIP-4844, get_base_fee_per_blob_gas).

    ``schedule``: the rules, or the name of a fork. Raises OverflowError if the price may exceed 256
    bits. No chain reaches such a price, and computing it would take very long.
    """
    rules = (schedule_for(schedule) if isinstance(schedule, str) else schedule).parameters
    fraction = int(rules["blob_base_fee_fraction"])
    return fake_exponential(int(rules["blob_min_base_fee"]), excess_blob_gas, fraction)


def fake_exponential(factor: int, numerator: int, denominator: int) -> int:
    """Computes ``factor * e ** (numerator / denominator)`` by Taylor's series in integers
    (EIP-4844).

    The rounding errors are part of the definition. Raises ValueError if ``denominator`` is not
    positive, OverflowError if the result may exceed 256 bits.
    """
    if denominator <= 0:
        raise ValueError(f"a denominator is positive, not {denominator}")
    if numerator > denominator * _HIGHEST_EXPONENT:
        raise OverflowError(f"e ** ({numerator} / {denominator}) exceeds 256 bits")
    term, total, i = factor * denominator, 0, 1
    while term > 0:
        total += term
        term = term * numerator // (denominator * i)
        i += 1
    return total // denominator
