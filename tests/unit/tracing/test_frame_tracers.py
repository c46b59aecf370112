"""Tests tracers that are based on call frames: positions, selectors, empty traces, long lists."""

import json

import msgspec
import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import (
    Spool,
    SpooledText,
    SpoolQuota,
    TraceRequest,
    TracingError,
    is_program,
    list_text,
    trace_block,
    trace_call,
)
from fastevm.tracing.flat import flattened, parity_error
from fastevm.tracing.frames import CallFrame
from tests.unit.core.interpreter.programs import asm

from .recorded import recorded, view_of
from .support import MAIN, OTHER, traced

IDENTITY = bytes(19) + b"\x04"
LOCATION_MEMBERS = {
    "blockHash": None,
    "blockNumber": 0,
    "transactionHash": None,
    "transactionPosition": 0,
}


def call(kind: str, target: bytes, size: int) -> bytes:
    return asm(0, 0, size, 28, target, 50_000, f"{kind} POP")


def test_selectors_are_counted_with_the_size_of_their_arguments() -> None:
    code = b"".join(
        (
            asm(0xA9059CBB, 0, "MSTORE"),
            call("STATICCALL", OTHER, 4),
            call("DELEGATECALL", OTHER, 4),
            call("STATICCALL", OTHER, 8),
            call("STATICCALL", OTHER, 3),
            call("STATICCALL", IDENTITY, 4),
        )
    )
    accounts = {MAIN: {"code": code}, OTHER: {"code": asm("STOP")}}
    answer = traced(accounts, tracer="4byteTracer", data=bytes.fromhex("1122334455"))
    assert answer == {"0x11223344-1": 1, "0xa9059cbb-0": 2, "0xa9059cbb-4": 1}


def test_nothing_is_an_empty_object() -> None:
    assert traced({MAIN: {"code": asm("STOP")}}, tracer="noopTracer") == {}


def test_a_call_has_no_place() -> None:
    (frame,) = traced({MAIN: {"code": asm("STOP")}}, tracer="flatCallTracer")
    assert {name: frame[name] for name in LOCATION_MEMBERS} == LOCATION_MEMBERS


def test_a_transaction_has_the_place_of_its_block() -> None:
    test = recorded("call_tracer_flat")["simple"]
    transaction = Transaction.decode(bytes.fromhex(test["input"][2:]))
    request = TraceRequest(tracer="flatCallTracer")
    ((frame, *_),) = msgspec.json.decode(
        msgspec.json.encode(trace_block(view_of(test), [transaction], request))
    )
    assert frame["blockNumber"] == int(test["context"]["number"])
    assert frame["transactionHash"] == "0x" + transaction.hash.hex()
    assert (frame["blockHash"], frame["transactionPosition"]) == (None, 0)


def frame(kind: str, depth: int, target: bytes = OTHER) -> CallFrame:
    return CallFrame(kind, depth, MAIN, target, 0, 0, 0, b"", b"", None, False)


def test_frames_are_numbered_without_those_that_are_not_shown() -> None:
    frames = [
        frame("CALL", 0),
        frame("STATICCALL", 1, IDENTITY),
        frame("CALL", 1),
        frame("CREATE", 2),
        frame("DELEGATECALL", 2, IDENTITY),
        frame("CALL", 1),
    ]
    shown = flattened(frames, {IDENTITY})
    assert [(entry.address, entry.subtraces) for entry in shown] == [
        ((), 2),
        ((0,), 2),
        ((0, 0), 0),
        ((0, 1), 0),
        ((1,), 0),
    ]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("execution reverted", "Reverted"),
        ("out of gas", "Out of gas"),
        ("invalid opcode: INVALID", "Bad instruction"),
        ("stack underflow (0 <=> 1)", "Stack underflow"),
        ("stack limit reached 1024 (1023)", "Out of stack"),
        ("max call depth exceeded", "max call depth exceeded"),
    ],
)
def test_errors_have_the_words_of_parity(error: str, words: str) -> None:
    assert parity_error(error) == words


def test_long_lists_lie_in_the_spool() -> None:
    spool = Spool(SpoolQuota(1 << 28))
    items = [json.dumps("x" * 1000).encode()] * 2000
    text = list_text(items, spool)
    assert isinstance(text, SpooledText)
    assert json.loads(text.read(0, text.size)) == ["x" * 1000] * 2000
    assert list_text([b"1", b"2"], spool) == b"[1,2]"
    assert list_text([], None) == b"[]"
    with pytest.raises(TracingError, match="exceeds 134217728 bytes"):
        list_text(iter([b"x" * (1 << 27)] * 2), spool)


def test_programs_are_reported_from_names() -> None:
    assert is_program("{result: function() {}}")
    assert not is_program("4byteTracer")


def test_flags_are_booleans() -> None:
    request = TraceRequest(tracer="flatCallTracer", config={"includePrecompiles": 1})
    with pytest.raises(TracingError, match="includePrecompiles of type bool"):
        trace_call(view_of(recorded("call_tracer_flat")["simple"]), CallRequest(), request)
