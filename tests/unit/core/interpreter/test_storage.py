"""Tests storage: gas and refund of transitions, cold access, transient storage."""

import itertools

import pytest

from fastevm.core.spec.schedule import schedule_for
from fastevm.testing.interpreter import BareMachine

from .programs import MAIN, OTHER, asm, returning

SLOT = 9


def eip2200(original: int, current: int, new: int, *, clear_refund: int) -> tuple[int, int]:
    """Returns cost and refund of a warm write, by EIP-2200 with EIP-2929 prices."""
    if new == current:
        return 100, 0
    if current == original:
        refund = clear_refund if new == 0 else 0
        return (20_000, 0) if original == 0 else (2_900, refund)
    refund = 0
    if original != 0:
        if current == 0:
            refund -= clear_refund
        if new == 0:
            refund += clear_refund
    if original == new:
        refund += 20_000 - 100 if original == 0 else 5_000 - 2_100 - 100
    return 100, refund


@pytest.mark.parametrize("values", list(itertools.product([0, 1, 2], repeat=3)))
@pytest.mark.parametrize(("fork", "clear_refund"), [("berlin", 15_000), ("osaka", 4_800)])
def test_two_writes_cost_and_give_back_what_the_rules_say(
    values: tuple[int, int, int], fork: str, clear_refund: int
) -> None:
    original, first, second = values
    code = asm(first, SLOT, "SSTORE", second, SLOT, "SSTORE")
    machine = BareMachine(fork, {MAIN: {"code": code, "storage": {SLOT: original}}})
    outcome = machine.call(MAIN, gas=100_000, keep=False)
    item = eip2200(original, original, first, clear_refund=clear_refund)
    two = eip2200(original, first, second, clear_refund=clear_refund)
    assert 100_000 - outcome.gas_left == 4 * 3 + 2_100 + item[0] + two[0]
    assert outcome.refund == item[1] + two[1]


@pytest.mark.parametrize("values", list(itertools.product([0, 1, 2], repeat=2)))
@pytest.mark.parametrize("fork", ["frontier", "byzantium", "petersburg"])
def test_before_net_metering_only_the_current_value_matters(
    values: tuple[int, int], fork: str
) -> None:
    current, new = values
    code = asm(new, SLOT, "SSTORE")
    machine = BareMachine(fork, {MAIN: {"code": code, "storage": {SLOT: current}}})
    outcome = machine.call(MAIN, gas=100_000)
    assert 100_000 - outcome.gas_left == 6 + (20_000 if current == 0 and new else 5_000)
    assert outcome.refund == (15_000 if current and not new else 0)
    assert machine.storage(MAIN, SLOT) == new


@pytest.mark.parametrize(("left", "succeeds"), [(2_300, False), (2_301, True)])
def test_sstore_needs_more_gas_than_a_stipend(left: int, succeeds: bool) -> None:
    code = asm(0, SLOT, "SLOAD POP", 1, SLOT, "SSTORE")
    machine = BareMachine("osaka", {MAIN: {"code": code, "storage": {SLOT: 1}}})
    before = 3 + 3 + 2_100 + 2 + 3 + 3
    assert (machine.call(MAIN, gas=before + left).status == 1) == succeeds


def test_a_slot_is_cold_once_and_again_when_its_frame_reverts() -> None:
    code = asm(SLOT, "SLOAD POP", SLOT, "SLOAD POP")
    machine = BareMachine("osaka", {MAIN: {"code": code}})
    assert 100_000 - machine.call(MAIN, gas=100_000).gas_left == 10 + 2_100 + 100
    reverting = {OTHER: {"code": asm(SLOT, "SLOAD", 0, 0, "REVERT")}}
    twice = asm(*[*[0] * 5, OTHER, 50_000, "CALL POP"] * 2)
    once = asm(*[0] * 5, OTHER, 50_000, "CALL POP")
    used = [
        100_000
        - BareMachine("osaka", {MAIN: {"code": code}} | reverting).call(MAIN, gas=100_000).gas_left
        for code in (once, twice)
    ]
    assert used[1] - used[0] == 7 * 3 + 100 + 2 + 3 * 3 + 2_100


@pytest.mark.parametrize("fork", ["frontier", "tangerinewhistle", "istanbul"])
def test_sload_has_one_price_before_access_lists(fork: str) -> None:
    machine = BareMachine(fork, {MAIN: {"code": asm(SLOT, "SLOAD", SLOT, "SLOAD")}})
    price = schedule_for(fork).gas("SLOAD")
    assert price is not None
    assert 10_000 - machine.call(MAIN, gas=10_000).gas_left == 6 + 2 * price


def test_transient_values_last_one_transaction_and_do_not_outlive_a_revert() -> None:
    code = returning(5, SLOT, "TSTORE", SLOT, "TLOAD")
    machine = BareMachine(
        "osaka", {MAIN: {"code": code}, OTHER: {"code": returning(SLOT, "TLOAD")}}
    )
    assert int.from_bytes(machine.call(MAIN).output, "big") == 5
    reader = {MAIN: {"code": returning(SLOT, "TLOAD")}}
    assert int.from_bytes(BareMachine("osaka", reader).call(MAIN).output, "big") == 0
    # MAIN calls OTHER with DELEGATECALL. OTHER overwrites MAIN's transient slot and reverts.
    writer = asm(6, SLOT, "TSTORE", 0, 0, "REVERT")
    caller = returning(5, SLOT, "TSTORE", *[0] * 4, OTHER, "GAS DELEGATECALL POP", SLOT, "TLOAD")
    machine = BareMachine("osaka", {MAIN: {"code": caller}, OTHER: {"code": writer}})
    assert int.from_bytes(machine.call(MAIN).output, "big") == 5
