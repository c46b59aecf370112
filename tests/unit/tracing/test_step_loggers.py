"""Tests struct logs: the members of each step, as in go-ethereum."""

import pytest

from fastevm.tracing import StepOptions, TracingError
from fastevm.tracing import blocks as traced_blocks
from tests.unit.core.interpreter.programs import asm, returning

from .support import MAIN, OTHER, traced

WORD = "0x" + "00" * 31


def test_a_step_tells_what_was_before_it_and_what_it_cost() -> None:
    answer = traced({MAIN: {"code": asm(2, 3, "ADD", 0, "SSTORE")}})
    assert (answer["gas"], answer["failed"], answer["returnValue"]) == (43_112, False, "0x")
    add, store = answer["structLogs"][2], answer["structLogs"][4]
    assert add == {
        "pc": 4,
        "op": "ADD",
        "gas": 78_994,
        "gasCost": 3,
        "depth": 1,
        "stack": ["0x2", "0x3"],
    }
    assert store["gasCost"] == 22_100
    assert store["storage"] == {WORD + "00": WORD + "05"}


def test_storage_gathers_the_slots_of_its_contract_in_order() -> None:
    other = {"code": asm(7, 1, "SSTORE"), "storage": {}}
    call = asm(0, 0, 0, 0, 0, OTHER, 60_000, "CALL POP")
    main = {"code": asm(9, "SLOAD POP") + call + asm(3, "SLOAD"), "storage": {9: 4}}
    answer = traced({MAIN: main, OTHER: other}, gas=200_000)
    shown = [(s["depth"], s["storage"]) for s in answer["structLogs"] if "storage" in s]
    assert shown == [
        (1, {WORD + "09": WORD + "04"}),
        (2, {WORD + "01": WORD + "07"}),
        (1, {WORD + "03": WORD + "00", WORD + "09": WORD + "04"}),
    ]


def test_memory_return_data_and_stack_are_shown_as_asked_for() -> None:
    code = asm(0xFF, 0, "MSTORE", 0, 0, 0, 0, OTHER, 50_000, "STATICCALL POP")
    accounts = {MAIN: {"code": code}, OTHER: {"code": returning(7)}}
    by_default = traced(accounts)["structLogs"]
    assert not any("memory" in step or "returnData" in step for step in by_default)
    options = StepOptions(memory=True, return_data=True, stack=False)
    full = traced(accounts, steps=options)["structLogs"]
    assert not any("stack" in step for step in full)
    assert "memory" not in full[0]
    assert full[3]["memory"] == [WORD + "ff"]
    assert full[-1]["returnData"] == WORD + "07"


def test_a_refund_is_shown_once_there_is_one() -> None:
    main = {"code": asm(0, 1, "SSTORE"), "storage": {1: 1}}
    steps = traced({MAIN: main})["structLogs"]
    assert "refund" not in steps[1]
    assert [step["refund"] for step in steps[2:]] == [4_800, 4_800]


@pytest.mark.parametrize(
    ("code", "words", "cost"),
    [
        (asm("ADD"), "stack underflow (0 <=> 2)", 3),
        (asm("SLOAD"), "stack underflow (0 <=> 1)", 0),
        (asm(*[1] * 1025), "stack limit reached 1024 (1023)", 3),
        (asm(1, 0, "SSTORE"), "out of gas", 22_100),
    ],
)
def test_what_is_known_before_the_op_is_an_error(code: bytes, words: str, cost: int) -> None:
    answer = traced({MAIN: {"code": code}}, gas=40_000)
    step = answer["structLogs"][-1]
    assert (step["error"], step["gasCost"]) == (words, cost)
    assert (answer["failed"], answer["returnValue"]) == (True, "0x")


@pytest.mark.parametrize("code", [asm("INVALID"), asm(0, "JUMP"), asm(0, 0, "REVERT"), b"\x0c"])
def test_what_shows_only_in_the_op_is_no_error_of_the_step(code: bytes) -> None:
    answer = traced({MAIN: {"code": code}})
    assert answer["failed"]
    assert "error" not in answer["structLogs"][-1]


def test_revert_data_is_the_return_value() -> None:
    code = asm(0xAB, 0, "MSTORE8", 1, 0, "REVERT")
    assert traced({MAIN: {"code": code}})["returnValue"] == "0xab"


def test_a_limit_keeps_the_first_steps_only() -> None:
    code = asm(*["GAS"] * 50)
    whole = traced({MAIN: {"code": code}})["structLogs"]
    some = traced({MAIN: {"code": code}}, steps=StepOptions(limit=300))["structLogs"]
    assert 0 < len(some) < len(whole)
    assert some == whole[: len(some)]


LOOP = asm("JUMPDEST", 0, "JUMP")


def test_a_trace_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(TracingError, match="execution timeout"):
        traced({MAIN: {"code": LOOP}}, gas=40_000_000, timeout=0.01, tracer="prestateTracer")


def test_a_trace_that_grows_too_large_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traced_blocks, "TRACE_BYTES_LIMIT", 10_000)
    with pytest.raises(TracingError, match="trace exceeds"):
        traced({MAIN: {"code": LOOP}}, gas=10_000_000)


def test_a_refused_call_says_why() -> None:
    with pytest.raises(TracingError, match="tracing failed: insufficient funds"):
        traced({}, value=10**30)
    with pytest.raises(TracingError, match="tracing failed: intrinsic gas too low"):
        traced({}, gas=20_000)
