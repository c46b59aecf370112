"""Tests callTracer: the tree, its error texts, and the frames of logs."""

import gc
from typing import Any

import pytest

from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import Spool, SpooledText, SpoolQuota, TraceRequest, TracingError, trace_call
from tests.unit.core.interpreter.programs import asm, returning

from .support import MAIN, OTHER, SENDER, traced, view_of


def tree(accounts: Any, **options: Any) -> Any:
    return traced(accounts, tracer="callTracer", **options)


def call(kind: str, *, value: int = 0, gas: int = 50_000) -> bytes:
    values = [value] if kind in ("CALL", "CALLCODE") else []
    return asm(0, 0, 0, 0, *values, OTHER, gas, f"{kind} POP")


def test_the_top_frame_has_the_gas_of_the_transaction() -> None:
    answer = tree({MAIN: {"code": returning(7)}}, data=b"\x01\x02", value=3)
    assert answer["gasUsed"] > hex(21_000)
    assert answer | {"gasUsed": ""} == {
        "from": hex_bytes(SENDER),
        "gas": hex(100_000),
        "gasUsed": "",
        "to": hex_bytes(MAIN),
        "input": "0x0102",
        "output": "0x" + "07".zfill(64),
        "value": "0x3",
        "type": "CALL",
    }


@pytest.mark.parametrize(
    ("kind", "value", "caller"),
    [
        ("CALL", "0x1", MAIN),
        ("CALLCODE", "0x1", MAIN),
        ("DELEGATECALL", "0x5", MAIN),
        ("STATICCALL", None, MAIN),
    ],
)
def test_every_kind_of_call_has_its_caller_and_value(
    kind: str, value: str | None, caller: bytes
) -> None:
    accounts = {MAIN: {"code": call(kind, value=1)}, OTHER: {"code": asm("STOP")}}
    (inner,) = tree(accounts, value=5)["calls"]
    assert (inner["type"], inner["from"], inner["to"]) == (
        kind,
        hex_bytes(caller),
        hex_bytes(OTHER),
    )
    assert inner.get("value") == value
    assert inner["input"] == "0x"
    assert "output" not in inner


def test_a_call_by_borrowed_code_comes_from_the_borrower() -> None:
    third = b"\xdd" * 20
    delegating = asm(0, 0, 0, 0, third, 20_000, "DELEGATECALL")
    accounts = {MAIN: {"code": call("DELEGATECALL")}, OTHER: {"code": delegating}}
    inner = tree(accounts)["calls"][0]["calls"][0]
    assert inner["from"] == hex_bytes(MAIN)


def test_failures_are_reported_in_full_words() -> None:
    accounts = {MAIN: {"code": call("CALL")}, OTHER: {"code": asm("ADD")}}
    (inner,) = tree(accounts)["calls"]
    assert inner["error"] == "stack underflow (0 <=> 2)"
    assert inner["gasUsed"] == inner["gas"]
    poor = tree({MAIN: {"code": call("CALL", value=1)}})["calls"][0]
    assert poor["error"] == "insufficient balance for transfer"
    assert poor["gasUsed"] == "0x0"


def test_a_reason_is_decoded() -> None:
    reason = bytes.fromhex("08c379a0") + (32).to_bytes(32, "big") + (2).to_bytes(32, "big")
    reason += b"no".ljust(32, b"\0")
    store = b"".join(asm(byte, at, "MSTORE8") for at, byte in enumerate(reason))
    answer = tree({MAIN: {"code": store + asm(len(reason), 0, "REVERT")}})
    assert answer["error"] == "execution reverted"
    assert answer["revertReason"] == "no"
    assert answer["output"] == hex_bytes(reason)


def test_a_failed_creation_has_no_address() -> None:
    good = tree({}, to=None, data=asm("STOP"))
    assert good["type"] == "CREATE"
    assert len(good["to"]) == 42
    bad = tree({}, to=None, data=asm("INVALID"))
    assert "to" not in bad
    assert bad["error"] == "invalid opcode: INVALID"


def test_selfdestruct_is_a_call_that_moves_the_balance() -> None:
    accounts = {MAIN: {"code": asm(OTHER, "SELFDESTRUCT"), "balance": 9}}
    (moved,) = tree(accounts)["calls"]
    assert moved == {
        "from": hex_bytes(MAIN),
        "gas": "0x0",
        "gasUsed": "0x0",
        "to": hex_bytes(OTHER),
        "input": "0x",
        "value": "0x9",
        "type": "SELFDESTRUCT",
    }


def logging(topic: int) -> bytes:
    return asm(topic, 0, 0, "LOG1")


def test_logs_stand_at_their_frames_and_those_of_failures_are_gone() -> None:
    failing = logging(8) + asm(0, 0, "REVERT")
    main = logging(1) + call("CALL") + logging(2)
    inner = tree({MAIN: {"code": main}, OTHER: {"code": logging(5)}}, config={"withLog": True})
    assert [(log["index"], log["position"], log["topics"][0][-1]) for log in inner["logs"]] == [
        ("0x0", "0x0", "1"),
        ("0x2", "0x1", "2"),
    ]
    assert [log["index"] for log in inner["calls"][0]["logs"]] == ["0x1"]
    lost = tree({MAIN: {"code": main}, OTHER: {"code": failing}}, config={"withLog": True})
    assert [log["index"] for log in lost["logs"]] == ["0x0", "0x1"]
    assert "logs" not in lost["calls"][0]


def test_only_the_top_call_on_demand() -> None:
    accounts = {MAIN: {"code": call("CALL")}, OTHER: {"code": asm("STOP")}}
    assert "calls" not in tree(accounts, config={"onlyTopCall": True})


def test_calls_hundreds_deep_are_rendered() -> None:
    code = asm(0, 0, 0, 0, 0, "ADDRESS GAS CALL")
    request = CallRequest(sender=SENDER, to=MAIN, gas=50_000_000)
    answer = trace_call(view_of({MAIN: {"code": code}}), request, TraceRequest(tracer="callTracer"))
    assert 500 < bytes(answer).count(b'"calls":[{') <= 1024


LOOPED_CALLS = bytes.fromhex("5b5f5f5f5f5f60045af1505f56")  # calls of the identity precompile
MEGABYTE = 1 << 20


def looped_calls(gas: int, spool: Spool | None = None) -> Any:
    request = CallRequest(sender=SENDER, to=MAIN, gas=gas)
    view = view_of({MAIN: {"code": LOOPED_CALLS}})
    return trace_call(view, request, TraceRequest(tracer="callTracer"), spool=spool)


def test_a_large_tree_is_written_without_python_values() -> None:
    """Creating Python values for 7,000 calls would hold the GIL and delay the event loop."""
    calls = bytes(looped_calls(10**6)).count(b'"type"')
    before = gc.get_stats()[0]["collections"], gc.get_threshold()
    gc.set_threshold(calls // 10)
    try:
        assert bytes(looped_calls(10**6)).count(b'"type"') == calls > 5_000
    finally:
        gc.set_threshold(*before[1])
    assert gc.get_stats()[0]["collections"] - before[0] <= 2


def test_a_large_tree_goes_to_the_spool() -> None:
    quota = SpoolQuota(64 * MEGABYTE)
    short, whole = looped_calls(10**5, Spool(quota)), looped_calls(2 * 10**6)
    assert bytes(short) == bytes(looped_calls(10**5))
    spooled = looped_calls(2 * 10**6, Spool(quota))
    assert isinstance(spooled, SpooledText)
    assert spooled.size > 2 * MEGABYTE
    assert spooled.read(0, spooled.size) == bytes(whole)
    assert quota.used == spooled.size


def test_a_tree_beyond_the_room_of_the_spool_is_an_error() -> None:
    with pytest.raises(TracingError, match="fill the 1000000 bytes"):
        looped_calls(2 * 10**6, Spool(SpoolQuota(10**6)))
