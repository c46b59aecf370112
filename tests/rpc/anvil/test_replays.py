"""Tests trace_replay* and trace_call*: frames and state differences as in anvil."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from .scenario import NOBODY, SENDER, Side, without
from .test_traces import HASHES, SENT

MINER = "0x" + "00" * 20
EVERY = ["trace", "vmTrace", "stateDiff"]


def replayed(side: Side, name: str, types: list[str]) -> Any:
    (found,) = side.result("trace_replayBlockTransactions", side.block(name), types)
    assert found.pop("transactionHash") == side.hash(name)
    return found


@pytest.mark.parametrize("name", SENT)
def test_frames_and_output_are_those_of_anvil(ours: Side, anvil: Side, name: str) -> None:
    found, wanted = (replayed(side, name, ["trace"]) for side in (ours, anvil))
    assert found == wanted
    assert ours.result("trace_replayTransaction", ours.hash(name), ["trace"]) == found


@pytest.mark.parametrize("name", SENT)
def test_state_differences_are_those_of_anvil(ours: Side, anvil: Side, name: str) -> None:
    found, wanted = (replayed(side, name, ["stateDiff"]) for side in (ours, anvil))
    assert (found["trace"], found["vmTrace"]) == (wanted["trace"], wanted["vmTrace"])
    assert of_contracts(found["stateDiff"]) == of_contracts(wanted["stateDiff"])
    assert found["stateDiff"][SENDER]["nonce"] == wanted["stateDiff"][SENDER]["nonce"]


def of_contracts(difference: dict[str, Any]) -> dict[str, Any]:
    """Returns a state difference without sender and miner, whose balances depend on fees."""
    return {name: value for name, value in difference.items() if name not in (SENDER, MINER)}


def test_all_types_together_are_those_alone(ours: Side) -> None:
    for name in ("calls", "short life", "halted", "transfer"):
        together = replayed(ours, name, EVERY)
        for kind in EVERY:
            assert replayed(ours, name, [kind])[kind] == together[kind]


def ops_of(trace: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    for op in trace["ops"]:
        yield depth, op
        if op["sub"] is not None:
            yield from ops_of(op["sub"], depth + 1)


@pytest.mark.parametrize("name", SENT)
def test_ops_are_those_of_anvil(ours: Side, anvil: Side, name: str) -> None:
    found, wanted = (replayed(side, name, ["vmTrace"])["vmTrace"] for side in (ours, anvil))
    if name != "short life":  # anvil shows the code that the account had before the transaction
        assert found["code"] == wanted["code"] or wanted["code"] == "0x"
    for (depth, op), (other_depth, other) in zip(ops_of(found), ops_of(wanted), strict=True):
        assert (depth, op["pc"], op["op"]) == (other_depth, other["pc"], other["op"])
        if op["op"] not in ("CREATE", "CREATE2", "INVALID"):
            assert op["cost"] == other["cost"]


def test_ops_tell_what_they_did(ours: Side) -> None:
    trace = replayed(ours, "calls", ["vmTrace"])["vmTrace"]
    ops = [op for depth, op in ops_of(trace) if depth == 0]
    for before, op in pairwise(ops):
        if op["sub"] is None and "CREATE" not in op["op"]:
            assert op["ex"]["used"] == before["ex"]["used"] - op["cost"]
    push, zero, store, *_ = ops
    assert push["ex"]["push"] == ["0xdeadbeef"]
    assert zero["ex"]["push"] == ["0x0"]
    word = "0x" + "deadbeef".rjust(64, "0")
    assert store["ex"] | {"used": 0} == {
        "mem": {"data": word, "off": 0}, "push": [], "store": None, "used": 0,
    }  # fmt: skip
    first_call = next(op for op in ops if op["op"] == "CALL")
    assert first_call["ex"]["mem"] == {"data": "0x" + "01".rjust(64, "0"), "off": 0}
    assert first_call["ex"]["push"] == ["0x1"]
    stored = [op["ex"]["store"] for op in ops if op["op"] == "SSTORE"]
    assert stored == [{"key": "0x0", "val": "0x1"}, {"key": "0x1", "val": "0x2a"}]
    halted = [op for _, op in ops_of(trace) if op["ex"] is None]
    assert [op["op"] for op in halted] == ["INVALID"]


def test_a_transfer_has_no_ops(ours: Side, anvil: Side) -> None:
    found, wanted = (replayed(side, "transfer", ["vmTrace"]) for side in (ours, anvil))
    assert found == wanted


def test_calls_are_traced_without_a_transaction(ours: Side) -> None:
    receipt = ours.receipts["calls"]
    sent = ours.result("eth_getTransactionByHash", receipt["transactionHash"])
    call = {key: sent[key] for key in ("from", "to", "value", "input", "gas")}
    before = hex(int(receipt["blockNumber"], 16) - 1)
    found = ours.result("trace_call", call, ["trace"], before)
    replay = ours.result("trace_replayTransaction", receipt["transactionHash"], ["trace"])
    assert found == replay
    assert ours.result("trace_call", call, [], before) == found
    assert ours.result("trace_call", call, None, before) == found


def test_calls_build_on_each_other(ours: Side) -> None:
    call = {"from": SENDER, "to": ours.contract("caller"), "value": "0xa"}
    key = "0x" + "00" * 32
    first, second = ours.result("trace_callMany", [[call, ["stateDiff"]]] * 2, "latest")
    changes = [
        item["stateDiff"][ours.contract("caller")]["storage"][key]["*"] for item in (first, second)
    ]
    assert changes[0]["to"] == changes[1]["from"] != changes[1]["to"]
    assert ours.result("trace_callMany", [], "latest") == []
    alone = ours.result("trace_call", call, ["stateDiff"], "latest")
    assert alone["stateDiff"] == first["stateDiff"]


def test_overrides_hold_for_a_call(ours: Side) -> None:
    overrides = {NOBODY: {"code": "0x60076000526020 6000f3".replace(" ", "")}}
    found = ours.result("trace_call", {"to": NOBODY}, ["trace"], "latest", overrides)
    assert int(found["output"], 16) == 7


def test_a_signed_transaction_is_traced_and_not_submitted(ours: Side) -> None:
    raw = ours.result("eth_getRawTransactionByHash", ours.hash("transfer"))
    before = hex(int(ours.block("transfer"), 16) - 1)
    found = ours.result("trace_rawTransaction", raw, ["trace"], before)
    assert found == ours.result("trace_replayTransaction", ours.hash("transfer"), ["trace"])
    late = ours.ask("trace_rawTransaction", raw, ["trace"])["error"]
    assert late["code"] == -32000
    assert "nonce too low" in late["message"]


def test_what_is_refused(ours: Side) -> None:
    call = {"to": NOBODY}
    for method, *params in (
        ("trace_call", call, ["trac"]),
        ("trace_call", call, "trace"),
        ("trace_callMany", [[call]]),
        ("trace_callMany", [[call, ["trace"]]] * 1001),
        ("trace_rawTransaction", "0x00", ["trace"]),
        ("trace_replayTransaction", ours.hash("calls")),
    ):
        assert ours.ask(method, *params)["error"]["code"] == -32602, method
    unknown = ours.ask("trace_replayTransaction", "0x" + "12" * 32, ["trace"])["error"]
    assert unknown == {"code": -32000, "message": "transaction not found"}
    assert ours.result("trace_replayBlockTransactions", "0x0", ["trace"]) == []
    assert ours.result("trace_replayBlockTransactions", "0xfff", ["trace"]) == []


def test_several_tracers_of_one_run(ours: Side) -> None:
    parts: dict[str, Any] = {
        "callTracer": {"withLog": True},
        "prestateTracer": {"diffMode": True},
        "flatCallTracer": None,
        "4byteTracer": {},
        "noopTracer": None,
    }
    config = {"tracer": "muxTracer", "tracerConfig": parts}
    found = ours.result("debug_traceTransaction", ours.hash("calls"), config)
    for name, own in parts.items():
        alone = {"tracer": name, "tracerConfig": own}
        assert found[name] == ours.result("debug_traceTransaction", ours.hash("calls"), alone)
    (of_block,) = ours.result("debug_traceBlockByNumber", ours.block("calls"), config)
    assert of_block["result"] == found


def test_tracers_that_cannot_be_one_of_several(ours: Side) -> None:
    for parts in (
        {"muxTracer": {}},
        {"": {}},
        {"callTracer": 5},
        {"nothing": {}},
        {str(i): {} for i in range(17)},
    ):
        config = {"tracer": "muxTracer", "tracerConfig": parts}
        assert "error" in ours.ask("debug_traceTransaction", ours.hash("calls"), config)
    empty = {"tracer": "muxTracer"}
    assert ours.result("debug_traceTransaction", ours.hash("calls"), empty) == {}


def test_a_call_on_pending_state(ours: Side) -> None:
    call = {"from": SENDER, "to": ours.contract("echo"), "value": "0x1"}
    config = {"tracer": "callTracer"}
    found = ours.result("debug_traceCall", call, "pending", config)
    assert without(found, HASHES) == ours.result("debug_traceCall", call, "latest", config)
