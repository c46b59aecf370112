"""Measures the overhead of a call from Python: parsing its arguments and creating its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import fastevm
from fastevm.bench.engines.clock import seconds_of
from fastevm.bench.programs.loops import (
    BALANCE_OF,
    CALLER,
    HELPER,
    PROGRAM,
    TOKEN,
    balance_slot,
    transfer,
    word,
)
from fastevm.bench.report.figures import aim

LIMITS = {"empty call, 20-byte addresses": 1.2, "empty call, hex addresses": 1.6}


def measure() -> dict[str, float]:
    """Returns operation -> microseconds."""
    machine = fastevm.EVM()
    machine.set_account(CALLER, 10**18)
    machine.set_account(HELPER, code=b"\0")
    machine.set_account(PROGRAM, code=TOKEN, storage={balance_slot(CALLER): 10**18})
    spelled, caller = "0x" + HELPER.hex(), "0x" + CALLER.hex()
    balance_of = BALANCE_OF + word(int.from_bytes(CALLER, "big"))

    def there_and_back() -> None:
        machine.revert(machine.snapshot())

    actions: dict[str, Callable[[], object]] = {
        "empty call, 20-byte addresses": partial(machine.call, HELPER, sender=CALLER),
        "empty call, hex addresses": partial(machine.call, spelled, sender=caller),
        "balanceOf of a token": partial(machine.call, PROGRAM, balance_of, sender=CALLER),
        "transfer of a token": partial(machine.call, PROGRAM, transfer(HELPER, 5), sender=CALLER),
        "EVM()": fastevm.EVM,
        "snapshot and revert": there_and_back,
    }
    return {name: round(seconds_of(action) * 1e6, 3) for name, action in actions.items()}


def aims(found: dict[str, float]) -> list[dict[str, object]]:
    """Returns the aims in microseconds for the measured operations."""
    return [aim(name, "us", limit, found[name]) for name, limit in LIMITS.items()]
