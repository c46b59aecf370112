"""The rules that a machine may be told to skip, and limits that replace a fork's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from fastevm.core.spec.eips import Eip
from fastevm.core.spec.schedule import ForkSchedule, schedule_for

# What each name of ``EVM.unchecked`` leaves out.
UNCHECKED: Final = {
    "balance": "gas is free, and a sender receives the value that it lacks",
    "base_fee": "a transaction that offers no fee pays none",
    "block_gas_limit": "a transaction may have more gas than the block",
    "code_size": "code and init code have no limit (EIP-170, EIP-3860)",
    "gas_cap": "a transaction may have more gas than the fork's cap (EIP-7825)",
    "nonce": "any nonce; the account's nonce still moves",
    "sender_code": "a contract may send (EIP-3607)",
}
SCHEDULES: Final = 64  # with another limit of code, kept


def checked_names(names: Iterable[str]) -> frozenset[str]:
    """The names as a set; ValueError for one that is none of `UNCHECKED`."""
    found = frozenset((names,) if isinstance(names, str) else names)
    unknown = found - UNCHECKED.keys()
    if unknown:
        known = ", ".join(UNCHECKED)
        raise ValueError(f"no rule is called {sorted(map(str, unknown))[0]!r}: there are {known}")
    return found


@lru_cache(maxsize=SCHEDULES)
def limited_code(schedule: ForkSchedule, limit: int) -> ForkSchedule:
    """The rules with another limit of code, twice that of init code; 0: no limit."""
    if limit < 0 or limit >= 2**31:
        raise ValueError(f"a limit of code is 0 to 2**31 - 1 bytes, not {limit}")
    sizes = {"max_code_size": limit}
    if schedule.parameters["max_initcode_size"]:
        sizes["max_initcode_size"] = 2 * limit
    changed = Eip(170, "Contract code size limit", parameters=sizes)
    fork = schedule.fork.then(schedule.name, changed)
    blobs = schedule.blobs if schedule.parameters["has_blobs"] else None
    return schedule_for(fork, blobs=blobs)
