"""Tests that access lists have the right entries and make the call cheaper."""

import pytest

from fastevm.core.execution.transaction.transaction_fields import AccessListEntry
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import AccountOverride, CallRequest
from fastevm.tracing import TracingError, create_access_list
from tests.unit.core.interpreter.programs import asm

from .support import MAIN, OTHER, RICH, SENDER, Accounts, view_of

CALL = CallRequest(sender=SENDER, to=MAIN, gas=200_000)
IDENTITY = bytes(19) + b"\x04"


def test_slots_and_accounts_in_order() -> None:
    code = asm(9, "SLOAD POP", 2, "SLOAD POP", OTHER, "BALANCE POP")
    found = create_access_list(view_of({MAIN: {"code": code}}), CALL)
    assert found.access_list == (AccessListEntry(MAIN, (2, 9)), AccessListEntry(OTHER, ()))
    assert found.error is None


def test_the_gas_is_that_with_the_list() -> None:
    view = view_of({MAIN: {"code": asm(2, "SLOAD")}})
    found = create_access_list(view, CALL)
    # 2,400 for the account, 1,900 for the slot, a warm read instead of a cold read
    assert found.gas_used == 21_000 + 2_400 + 1_900 + 3 + 100


def test_what_is_warm_anyway_is_left_out() -> None:
    code = asm("CALLER BALANCE POP ADDRESS BALANCE POP")
    code += asm(0, 0, 0, 0, IDENTITY, 1000, "STATICCALL")
    assert create_access_list(view_of({MAIN: {"code": code}}), CALL).access_list == ()


def test_a_list_that_changes_what_the_call_does_is_run_again() -> None:
    # reads slot 2 only while slot 1 is warm
    probe = asm("GAS", 1, "SLOAD POP", "GAS", "SWAP1 SUB", 1000, "GT")
    code = probe + asm(len(probe) + 8, "JUMPI STOP")
    code += b"\x5b" * (len(probe) + 8 - len(code) + 1) + asm(2, "SLOAD")
    found = create_access_list(view_of({MAIN: {"code": code}}), CALL)
    assert found.access_list == (AccessListEntry(MAIN, (1, 2)),)


def test_a_given_list_is_kept() -> None:
    given = (AccessListEntry(OTHER, (7,)), AccessListEntry(SENDER, ()))
    found = create_access_list(view_of({}), replace(CALL, access_list=given))
    assert found.access_list == (AccessListEntry(OTHER, (7,)),)


def test_a_failing_call_has_a_list_and_an_error() -> None:
    code = asm(2, "SLOAD", 0, 0, "REVERT")
    found = create_access_list(view_of({MAIN: {"code": code}}), CALL)
    assert found.error == "execution reverted"
    assert found.access_list == (AccessListEntry(MAIN, (2,)),)


def test_a_creation_leaves_its_own_address_out() -> None:
    request = replace(CALL, to=None, data=asm("ADDRESS BALANCE POP", 3, "SLOAD"))
    found = create_access_list(view_of({}), request)
    ((address, slots),) = found.access_list
    assert slots == (3,)
    assert address not in (SENDER, bytes(20))


def test_overrides_count() -> None:
    override = {MAIN: AccountOverride(code=asm(6, "SLOAD"))}
    found = create_access_list(view_of({}), CALL, state_overrides=override)
    assert found.access_list == (AccessListEntry(MAIN, (6,)),)


def test_a_call_that_breaks_a_rule_is_refused() -> None:
    accounts: Accounts = {}
    with pytest.raises(TracingError, match=r"^failed to apply transaction: 0x\w{64} err: insuff"):
        create_access_list(view_of(accounts), replace(CALL, value=RICH + 1))
