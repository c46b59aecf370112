"""Tests JavaScript tracers over JSON-RPC: calls, transactions and blocks."""

from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.tracing.javascript import worker_process

COUNTER = "0x" + "c0" * 20
# increments slot 7 and logs the new value
COUNTER_CODE = "0x6007546001018060075560005260206000a000"
PROGRAM = """{ ops: [], setup: function(text) { this.with = JSON.parse(text) },
  step: function(log, db) { this.ops.push(log.op.toString()) }, fault: function() {},
  result: function(ctx, db) { return { ops: this.ops.length, last: this.ops.pop(),
    slot: toHex(db.getState(ctx.to, toWord('0x7'))), config: this.with, type: ctx.type,
    hash: ctx.txHash === undefined ? null : toHex(ctx.txHash), index: ctx.txIndex } } }"""
REQUEST = {"tracer": PROGRAM, "tracerConfig": {"x": 1}}


@pytest.fixture(scope="module")
def node() -> Iterator[LocalNode]:
    with LocalNode() as node:
        ask(node, "anvil_setCode", COUNTER, COUNTER_CODE)
        yield node


def ask(node: LocalNode, method: str, *params: Any) -> Any:
    return node.request(method, list(params))


def slot(value: int) -> str:
    return f"0x{value:064x}"


def test_calls_transactions_and_blocks_are_traced(node: LocalNode) -> None:
    pytest.importorskip("quickjs", reason="needs the extra fastevm[javascript]")
    sender = ask(node, "eth_accounts")[0]
    call = {"from": sender, "to": COUNTER}
    found = ask(node, "debug_traceCall", call, "latest", REQUEST)
    assert found["ops"] == 13 and found["last"] == "STOP" and found["hash"] is None
    assert (found["config"], found["type"], found["slot"]) == ({"x": 1}, "CALL", slot(1))
    sent = ask(node, "eth_sendTransaction", {"from": sender, "to": COUNTER})
    traced = ask(node, "debug_traceTransaction", sent, REQUEST)
    assert (traced["hash"], traced["index"], traced["slot"]) == (sent, 0, slot(1))
    (in_block,) = ask(node, "debug_traceBlockByNumber", "latest", REQUEST)
    assert in_block["txHash"] == sent and in_block["result"] == traced


def test_errors_are_those_of_the_program(node: LocalNode) -> None:
    pytest.importorskip("quickjs", reason="needs the extra fastevm[javascript]")
    program = "{result: function() { return nothing.there }, fault: function() {}}"
    with pytest.raises(NodeError, match="in server-side tracer function 'result'"):
        ask(node, "debug_traceCall", {"to": COUNTER}, "latest", {"tracer": program})
    program = "{result: function() { for (;;); }, fault: function() {}}"
    config = {"tracer": program, "timeout": "300ms"}
    with pytest.raises(NodeError, match="execution timeout"):
        ask(node, "debug_traceCall", {"to": COUNTER}, "latest", config)


def test_without_the_engine_the_error_names_the_extra(
    node: LocalNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "find_spec", lambda name: None)
    with pytest.raises(NodeError, match=r"install fastevm\[javascript\]"):
        ask(node, "debug_traceCall", {"to": COUNTER}, "latest", REQUEST)
