"""Rules that a machine may skip, and limits that replace those of a fork."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from fastevm.core.primitives.located import shown
from fastevm.core.spec.eips import Eip
from fastevm.core.spec.schedule import ForkSchedule, schedule_for

# The effect of each name in ``EVM.unchecked``.
UNCHECKED: Final = {
    "balance": "gas is free, and a sender receives missing value",
    "base_fee": "a transaction that offers no fee pays none",
    "block_gas_limit": "a transaction may have more gas than the block's limit",
    "code_size": "code and init code have no size limit (EIP-170, EIP-3860)",
    "gas_cap": "a transaction may have more gas than the fork's cap (EIP-7825)",
    "nonce": "any nonce is valid; the account's nonce still increases",
    "sender_code": "a contract may be the sender (EIP-3607)",
}
SCHEDULES: Final = 64  # cached schedules with a changed code size limit


def checked_names(names: Iterable[str]) -> frozenset[str]:
    """Returns the names as a set. Raises ValueError for a name that is not in `UNCHECKED`."""
    given: Any = (names,) if isinstance(names, str) else names
    if not isinstance(given, Iterable):
        raise TypeError(f"unchecked: expected names of rules, found {type(names).__name__}")
    given = tuple(given)
    wrong = [type(name).__name__ for name in given if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"unchecked: expected names of rules, found {wrong[0]}")
    found = frozenset[str](given)
    unknown = found - UNCHECKED.keys()
    if unknown:
        known = ", ".join(UNCHECKED)
        raise ValueError(f"unknown rule {min(unknown)!r}: expected one of {known}")
    return found


@lru_cache(maxsize=SCHEDULES)
def limited_code(schedule: ForkSchedule, limit: int) -> ForkSchedule:
    """Returns the rules with another code size limit. 0 means no limit.

    The limit of init code is twice the code size limit.
    """
    if limit < 0 or limit >= 2**31:
        raise ValueError(f"invalid code size limit {shown(limit)}: expected 0 to 2**31 - 1 bytes")
    sizes = {"max_code_size": limit}
    if schedule.parameters["max_initcode_size"]:
        sizes["max_initcode_size"] = 2 * limit
    changed = Eip(170, "Contract code size limit", parameters=sizes)
    fork = schedule.fork.then(schedule.name, changed)
    blobs = schedule.blobs if schedule.parameters["has_blobs"] else None
    return schedule_for(fork, blobs=blobs)
