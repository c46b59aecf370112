"""What the tests of the EIPs share: how a rule moves through the forks."""

from collections.abc import Callable
from typing import Any

from fastevm.spec.forks import FORKS
from fastevm.spec.parameters import SstoreTransition
from fastevm.spec.schedule import ForkSchedule, schedule_for


def introduced(number: int) -> str:
    """The fork that brought the EIP of this number, which is in force in all later ones too."""
    having = [f.name for f in FORKS if number in {eip.number for eip in f.all_eips}]
    assert having == [f.name for f in FORKS][-len(having) :]
    return having[0]


def changes(value: Callable[[ForkSchedule], Any]) -> dict[str, Any]:
    """The value in Frontier, and in each fork that changed it."""
    found: dict[str, Any] = {}
    for fork in FORKS:
        now = value(schedule_for(fork))
        if not found or now != list(found.values())[-1]:
            found[fork.name] = now
    return found


def price(mnemonic: str) -> dict[str, int | None]:
    """How the static price of an opcode has changed; ``None`` = not an opcode yet."""
    return changes(lambda schedule: schedule.gas(mnemonic))


def parameter(name: str) -> dict[str, Any]:
    """How a parameter has changed."""
    return changes(lambda schedule: schedule.parameters[name])


def precompile(name: str) -> dict[str, int | None]:
    """At which address a precompile stands since when."""
    return changes(lambda schedule: schedule.precompiles.get(name))


def sstore_totals(fork: str, writes: tuple[int, ...]) -> tuple[int, int]:
    """Gas and refund of SSTOREs to one warm slot; the first value is the one before them."""
    packed = schedule_for(fork).packed()
    original, *rest = writes
    current, gas, refund = original, 0, 0
    for new in rest:
        row = _row(original, current, new)
        gas += packed["sstore_cost"][row]
        refund += packed["sstore_refund"][row]
        current = new
    return gas, refund


def _row(original: int, current: int, new: int) -> SstoreTransition:
    row = SstoreTransition
    if new == current:
        return row.NOOP
    if current == original:
        return row.CREATE if original == 0 else row.DELETE if new == 0 else row.UPDATE
    if new == original:
        if original == 0:
            return row.RESTORE_ZERO
        return row.UNDELETE_RESTORE if current == 0 else row.RESTORE
    if original != 0 and current == 0:
        return row.DIRTY_UNDELETE
    return row.DIRTY_DELETE if original != 0 and new == 0 else row.DIRTY
