"""Tests vmTrace in cases that recordings of other nodes do not cover, and combined observers."""

from typing import Any

import msgspec
import pytest

from fastevm.core.primitives.hex import hex_word
from fastevm.core.simulation.values import CallRequest
from fastevm.core.state.layer import Layer
from fastevm.tracing import ReplayTracer, Spool, SpooledText, SpoolQuota, TraceRequest, trace_call
from fastevm.tracing.observer import Observer, observer_of
from fastevm.tracing.parity import state_difference
from tests.unit.core.interpreter.programs import asm

from .support import MAIN, OTHER, SENDER, traced, view_of

OPS = TraceRequest(make=lambda budget, spool: ReplayTracer({"vmTrace"}, budget, spool))


def ops(code: bytes, **call: Any) -> list[dict[str, Any]]:
    request = CallRequest(**({"sender": SENDER, "to": MAIN, "gas": 100_000} | call))
    answer = trace_call(view_of({MAIN: {"code": code}}), request, OPS)
    found = msgspec.json.decode(msgspec.json.encode(answer))["vmTrace"]
    assert found["code"] == "0x" + code.hex()
    return list(found["ops"])


def pushed(code: bytes, place: int) -> list[str]:
    return list(ops(code)[place]["ex"]["push"])


def test_duplicates_and_swaps_show_every_item_that_they_reach() -> None:
    assert pushed(asm(1, 2, "DUP2", "STOP"), 2) == ["0x1", "0x2", "0x1"]
    assert pushed(asm(1, 2, 3, "SWAP2", "STOP"), 3) == ["0x3", "0x2", "0x1"]


def test_memory_is_what_an_op_wrote_or_loaded() -> None:
    memory = [op["ex"]["mem"] for op in ops(asm(0xAB, 3, "MSTORE8", 0, "MLOAD", "STOP"))]
    word = "0x000000ab" + "00" * 28
    assert memory[2] == {"off": 3, "data": "0xab"}
    assert memory[4] == {"off": 0, "data": word}
    copied = ops(asm(2, 0, 5, "CODECOPY", 0, 0, 9, "CODECOPY", "STOP"))
    assert copied[3]["ex"]["mem"] == {"off": 5, "data": "0x6002"}
    assert copied[7]["ex"]["mem"] is None


@pytest.mark.parametrize(
    ("code", "place"),
    [
        (asm("POP"), 0),
        (asm(1, "JUMP"), 1),
        (asm(1 << 40, "MLOAD"), 1),
        (asm("INVALID"), 0),
    ],
)
def test_an_op_that_halts_did_nothing(code: bytes, place: int) -> None:
    found = ops(code)
    assert [op["ex"] is None for op in found] == [False] * place + [True]


def test_a_revert_is_no_halt() -> None:
    *_, last = ops(asm(0, 0, "REVERT"))
    assert last["ex"]["push"] == []


def test_long_traces_lie_in_the_spool() -> None:
    spool = Spool(SpoolQuota(1 << 26))
    code = asm("JUMPDEST", 0, "MLOAD", "POP", 0, "JUMP")
    request = CallRequest(sender=SENDER, to=MAIN, gas=400_000)
    answer = trace_call(view_of({MAIN: {"code": code}}), request, OPS, spool=spool)
    text = answer["vmTrace"]
    assert isinstance(text, SpooledText)
    found = msgspec.json.decode(text.read(0, text.size))
    assert len(found["ops"]) > 10_000
    assert found["ops"][-1]["ex"] is None


def test_observers_side_by_side_see_the_whole_run() -> None:
    code = asm("JUMPDEST", 0, 0, 0, 0, 0, OTHER, 100, "CALL POP", 0, "JUMP")
    accounts = {MAIN: {"code": code}}
    config = {"callTracer": None, "prestateTracer": None}
    found = traced(accounts, tracer="muxTracer", config=config, gas=1_000_000)
    assert found["callTracer"]["calls"]
    assert found["callTracer"]["error"] == "out of gas"


def test_no_observers_are_one_that_keeps_nothing() -> None:
    assert type(observer_of([])) is Observer
    assert observer_of([]).kept == 0


def test_a_difference_of_accounts_that_come_and_go() -> None:
    before = Layer.of({MAIN: {"balance": 5, "code": b"\x00", "storage": {1: 2}}})
    after = Layer.of({OTHER: {"nonce": 1, "code": b"\x01", "storage": {3: 4}}})
    found = state_difference({MAIN: {1}, OTHER: {3}, SENDER: set()}, before, after)
    assert found == {
        "0x" + MAIN.hex(): {
            "balance": {"-": "0x5"}, "code": {"-": "0x00"}, "nonce": {"-": "0x0"},
            "storage": {hex_word(1): {"-": hex_word(2)}},
        },
        "0x" + OTHER.hex(): {
            "balance": {"+": "0x0"}, "code": {"+": "0x01"}, "nonce": {"+": "0x1"},
            "storage": {hex_word(3): {"+": hex_word(4)}},
        },
    }  # fmt: skip
