"""Tests erc7562Tracer in cases that recordings do not cover: options, logs, depth, hashes."""

from typing import Any

import msgspec
import pytest

from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import TraceRequest, TracingError, trace_call
from tests.unit.core.interpreter.programs import asm

from .support import MAIN, OTHER, SENDER, traced, view_of


def validation(code: bytes, config: dict[str, Any] | None = None, **call: Any) -> Any:
    accounts = {MAIN: {"code": code}, OTHER: {"code": asm(0, 0, "LOG0", "STOP")}}
    return traced(accounts, tracer="erc7562Tracer", config=config, **call)


def test_gas_counts_where_no_call_follows() -> None:
    called = asm(0, 0, 0, 0, 0, OTHER, "GAS CALL POP")
    assert "0x5a" not in validation(called + asm("STOP"))["usedOpcodes"]
    assert validation(called + asm("GAS POP STOP"))["usedOpcodes"]["0x5a"] == 1


def test_ops_that_are_ignored_are_chosen() -> None:
    code = asm(1, 2, "ADD", 3, "MUL", "POP STOP")
    assert validation(code)["usedOpcodes"] == {"0x0": 1}
    found = validation(code, {"ignoredOpcodes": ["0x1", "0x60"]})["usedOpcodes"]
    assert found == {"0x0": 1, "0x2": 1, "0x50": 1}
    with pytest.raises(TracingError, match="ignoredOpcodes: expected a list"):
        validation(code, {"ignoredOpcodes": 5})


def test_code_that_is_only_asked_whether_it_is_there() -> None:
    asked = asm(OTHER, "EXTCODESIZE", "ISZERO", "POP STOP")
    looked = asm(OTHER, "EXTCODESIZE", "POP STOP")
    assert validation(asked)["extCodeAccessInfo"] == []
    found = validation(looked)
    assert found["extCodeAccessInfo"] == [hex_bytes(OTHER)]
    assert found["contractSize"] == {hex_bytes(OTHER): {"contractSize": 6, "opcode": 0x3B}}


def test_transient_storage_and_preimages() -> None:
    code = asm(
        7, 5, "TSTORE", 5, "TLOAD", "POP", 0xAB, 0, "MSTORE", 33, 31, "KECCAK256", "POP STOP"
    )
    found = validation(code)
    slots = found["accessedSlots"]
    assert (slots["transientWrites"], slots["transientReads"]) == (
        {hex_word(5): 1},
        {hex_word(5): 1},
    )
    assert found["keccak"] == ["0xab" + "00" * 32]


def test_a_slot_that_was_written_first_is_not_read() -> None:
    found = validation(asm(7, 5, "SSTORE", 5, "SLOAD", "POP", 6, "SLOAD", "POP STOP"))
    slots = found["accessedSlots"]
    assert slots["reads"] == {hex_word(6): [hex_word(0)]}
    assert slots["writes"] == {hex_word(5): 1}


def test_logs_have_their_place() -> None:
    code = asm(0, 0, "LOG0", 0, 0, 0, 0, 0, OTHER, "GAS CALL POP", 0, 0, "LOG0", "STOP")
    found = validation(code, {"withLog": True})
    assert [(log["index"], log["position"]) for log in found["logs"]] == [
        ("0x0", "0x0"),
        ("0x2", "0x1"),
    ]
    (inner,) = found["calls"]
    assert [log["index"] for log in inner["logs"]] == ["0x1"]
    assert "logs" not in validation(code)


def test_calls_lie_in_each_other_at_any_depth() -> None:
    accounts = {MAIN: {"code": asm(0, 0, 0, 0, 0, "ADDRESS", "GAS CALL POP STOP")}}
    call = CallRequest(sender=SENDER, to=MAIN, gas=10**9)
    answer = trace_call(view_of(accounts), call, TraceRequest(tracer="erc7562Tracer", timeout=30.0))
    text = msgspec.json.encode(answer)
    assert text.count(b'"calls":[') > 400
    for opening, closing in ((b"{", b"}"), (b"[", b"]")):
        assert text.count(opening) == text.count(closing)


def test_what_ran_out_of_gas_says_so() -> None:
    code = asm(0, 0, 0, 0, 0, OTHER, 10, "CALL POP STOP")
    found = validation(code)
    assert found["outOfGas"] is False
    assert [(item["error"], item["outOfGas"]) for item in found["calls"]] == [("out of gas", True)]


def test_it_may_be_one_of_several() -> None:
    code = asm(0, 0, 0, 0, 0, OTHER, "GAS CALL POP STOP")
    accounts = {MAIN: {"code": code}}
    parts = {"erc7562Tracer": None, "4byteTracer": None, "prestateTracer": None}
    found = traced(accounts, tracer="muxTracer", config=parts)
    for name in parts:
        assert found[name] == traced(accounts, tracer=name)
