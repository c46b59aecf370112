"""Tests prestateTracer: accounts and slots, before and after."""

from typing import Any

import pytest

from fastevm.core.primitives.hex import hex_bytes
from fastevm.tracing import TracingError
from tests.unit.core.interpreter.programs import asm

from .support import COINBASE, MAIN, OTHER, RICH, SENDER, traced

SLOT = "0x" + "00" * 31


def prestate(accounts: Any, *, config: dict[str, Any] | None = None, **call: Any) -> Any:
    return traced(accounts, tracer="prestateTracer", config=config, **call)


def test_what_an_op_looks_at_is_shown_as_it_was() -> None:
    code = asm(9, 1, "SSTORE", OTHER, "BALANCE POP", b"\x77" * 20, "EXTCODESIZE")
    accounts = {
        MAIN: {"code": code, "nonce": 1, "storage": {1: 5, 2: 6}},
        OTHER: {"balance": 3},
        b"\x66" * 20: {"balance": 1},
    }
    answer = prestate(accounts)
    assert set(answer) == {hex_bytes(SENDER), hex_bytes(MAIN), hex_bytes(OTHER)}
    assert answer[hex_bytes(SENDER)] == {"balance": hex(RICH)}
    assert answer[hex_bytes(OTHER)] == {"balance": "0x3"}
    main = answer[hex_bytes(MAIN)]
    assert main["code"] == hex_bytes(code)
    assert len(main["codeHash"]) == 66
    assert main["nonce"] == 1
    assert main["storage"] == {SLOT + "01": SLOT + "05"}


def test_what_is_not_wanted_is_left_out_and_what_is_empty_is_kept_on_demand() -> None:
    accounts = {MAIN: {"code": asm(1, "SLOAD"), "storage": {1: 5}}}
    bare = prestate(accounts, config={"disableCode": True, "disableStorage": True})
    assert bare[hex_bytes(MAIN)].keys() == {"balance", "codeHash"}
    assert hex_bytes(COINBASE) not in bare
    assert prestate(accounts, config={"includeEmpty": True})[hex_bytes(COINBASE)] == {
        "balance": "0x0"
    }


def test_an_op_without_its_gas_looks_at_nothing() -> None:
    answer = prestate({MAIN: {"code": asm(1, "SLOAD")}}, gas=21_100)
    assert "storage" not in answer[hex_bytes(MAIN)]


def test_a_difference_holds_changed_fields_only() -> None:
    code = asm(0, 1, "SSTORE", 8, 2, "SSTORE", 3, "SLOAD POP", OTHER, "BALANCE")
    accounts = {
        MAIN: {"code": code, "storage": {1: 5, 3: 7}},
        OTHER: {"balance": 3},
    }
    answer = prestate(accounts, config={"diffMode": True}, value=2)
    pre, post = answer["pre"], answer["post"]
    assert set(pre) == set(post) == {hex_bytes(SENDER), hex_bytes(MAIN)}
    assert pre[hex_bytes(MAIN)]["storage"] == {SLOT + "01": SLOT + "05"}
    assert post[hex_bytes(MAIN)] == {"balance": "0x2", "storage": {SLOT + "02": SLOT + "08"}}
    assert post[hex_bytes(SENDER)] == {"balance": hex(RICH - 2), "nonce": 1}


def test_a_created_account_is_in_the_state_after_only() -> None:
    answer = prestate({}, config={"diffMode": True}, to=None, data=asm("STOP"))
    (created,) = set(answer["post"]) - {hex_bytes(SENDER)}
    assert answer["post"][created] == {"nonce": 1}
    assert created not in answer["pre"]


def test_a_deleted_account_is_in_the_state_before_only() -> None:
    accounts = {MAIN: {"code": asm(OTHER, "SELFDESTRUCT"), "balance": 4, "nonce": 1}}
    answer = prestate(accounts, config={"diffMode": True}, fork="london")
    assert answer["pre"][hex_bytes(MAIN)]["balance"] == "0x4"
    assert hex_bytes(MAIN) not in answer["post"]
    assert answer["post"][hex_bytes(OTHER)] == {"balance": "0x4"}


def test_a_delegate_is_looked_at() -> None:
    accounts = {MAIN: {"code": b"\xef\x01\x00" + OTHER}, OTHER: {"code": asm("STOP")}}
    assert hex_bytes(OTHER) in prestate(accounts)


def test_two_modes_exclude_each_other() -> None:
    with pytest.raises(TracingError, match="cannot use diffMode with includeEmpty"):
        prestate({}, config={"diffMode": True, "includeEmpty": True})
    with pytest.raises(TracingError, match="cannot unmarshal string"):
        prestate({}, config={"diffMode": "yes"})


def test_an_unknown_tracer_gets_a_suggestion() -> None:
    with pytest.raises(
        TracingError, match=r'unknown tracer "calTracer": did you mean "callTracer"'
    ):
        traced({}, tracer="calTracer")
