"""Tests traces and access lists over JSON-RPC: recorded results, and every error."""

import json
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc_client.messages import request_body

from .conftest import RECORDED

CREATION = "0xc1d605c6612a5fe84dc95810030bfe5b1d327652b381bc695e28f50d13b2b09e"
EMITTER = "0x7dcd17433742f4c0ca53122ab541d0ba67fc27df"
SENDER = "0x0c2c51a0990aee1d73c1228de158688341557508"
UNKNOWN = "0x" + "00" * 31 + "01"
TRACERS = (
    "callTracer", "flatCallTracer", "prestateTracer", "4byteTracer", "muxTracer", "erc7562Tracer",
    "noopTracer", "gasTracer", "coverageTracer", "edgeTracer",
)  # fmt: skip
CALL = {"from": SENDER, "to": EMITTER, "input": "0x010203040506"}


def ask(live: ServerThread, method: str, *params: Any) -> dict[str, Any]:
    """Returns the whole answer in geth's dialect."""
    with live.client("geth") as client:
        answer: dict[str, Any] = json.loads(client.send(request_body(method, params)))
    return answer


def fault(live: ServerThread, method: str, *params: Any) -> tuple[int, str]:
    error = ask(live, method, *params)["error"]
    return error["code"], error["message"]


RECORDED_TRACES = sorted(
    path
    for folder in ("debug_traceBlockByNumber", "debug_traceTransaction", "eth_createAccessList")
    for path in (RECORDED / "tests" / folder).glob("*.io")
)


@pytest.mark.parametrize("path", RECORDED_TRACES, ids=lambda path: path.stem)
def test_recorded_traces_are_equal_in_every_value(live: ServerThread, path: Any) -> None:
    lines = [line.strip() for line in path.read_text().splitlines() if line[:2] in (">>", "<<")]
    request, wanted = (json.loads(line[2:]) for line in lines)
    assert ask(live, request["method"], *request["params"]) == wanted


def test_blocks_by_hash_and_by_number_give_the_same(live: ServerThread) -> None:
    number = "0x32"
    block_hash = ask(live, "eth_getBlockByNumber", number, False)["result"]["hash"]
    for config in ({}, {"tracer": "callTracer"}, {"tracer": "prestateTracer"}):
        by_number = ask(live, "debug_traceBlockByNumber", number, config)["result"]
        by_hash = ask(live, "debug_traceBlockByHash", block_hash, config)["result"]
        assert by_number == by_hash
        item = ask(live, "debug_traceTransaction", by_number[-1]["txHash"], config)["result"]
        assert item == by_number[-1]["result"]


def test_the_gas_of_call_trees_is_that_of_the_receipts(live: ServerThread) -> None:
    for number in ("0x1", "0x8", "0x24", "0x32", "0x36"):
        receipts = ask(live, "eth_getBlockReceipts", number)["result"]
        config = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
        for receipt, trace in zip(
            receipts, ask(live, "debug_traceBlockByNumber", number, config)["result"], strict=True
        ):
            result = trace["result"]
            assert result["gasUsed"] == receipt["gasUsed"]
            logs = [(log["topics"], log["index"]) for log in result.get("logs", [])]
            assert logs == [(log["topics"], log["logIndex"]) for log in receipt["logs"]]


def test_a_difference_of_states_is_what_the_state_says(live: ServerThread) -> None:
    config = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}
    traces = ask(live, "debug_traceBlockByNumber", "0x36", config)["result"]
    for address, account in traces[-1]["result"]["post"].items():
        if "nonce" in account:
            found = ask(live, "eth_getTransactionCount", address, "0x36")["result"]
            assert found == hex(account["nonce"])


def test_a_call_sees_its_overrides(live: ServerThread) -> None:
    config = {
        "tracer": "callTracer",
        "stateOverrides": {EMITTER: {"code": "0x4360005260206000f3"}},
        "blockOverrides": {"number": "0x1234"},
    }
    trace = ask(live, "debug_traceCall", CALL, "latest", config)["result"]
    assert int(trace["output"], 16) == 0x1234
    assert trace["gas"] == hex(50_000_000)


def test_a_call_after_some_transactions_of_a_block(live: ServerThread) -> None:
    block = ask(live, "eth_getBlockByNumber", "0x1", True)["result"]
    sender = block["transactions"][0]["from"]
    config = {"tracer": "prestateTracer"}
    nonces = []
    for index in range(len(block["transactions"])):
        given = config | {"txIndex": hex(index)}
        call = {"from": sender, "to": SENDER}
        state = ask(live, "debug_traceCall", call, "0x1", given)["result"]
        nonces.append(state[sender].get("nonce", 0))
    mine = [t["from"] == sender for t in block["transactions"]]
    assert nonces == [sum(mine[:index]) for index in range(len(mine))]


def test_block_zero_has_no_traces_but_in_the_geth_dialect(live: ServerThread) -> None:
    tracer = {"tracer": "callTracer"}
    with live.client() as client:
        name = client.call("eth_getBlockByNumber", "0x0", False)["hash"]
        assert client.call("debug_traceBlockByNumber", "0x0") == []
        assert client.call("debug_traceBlockByNumber", "earliest", tracer) == []
        assert client.call("debug_traceBlockByHash", name, tracer) == []
    assert DIALECTS["geth"].of_development().block_zero_has_empty_trace


def test_what_cannot_be_traced(live: ServerThread) -> None:
    assert fault(live, "debug_traceTransaction", UNKNOWN) == (-32000, "transaction not found")
    missing = f"block {UNKNOWN} not found"
    assert fault(live, "debug_traceBlockByHash", UNKNOWN) == (-32000, missing)
    assert fault(live, "debug_traceCall", CALL, UNKNOWN) == (-32000, missing)
    assert fault(live, "debug_traceBlockByNumber", "0x999") == (-32000, "block #2457 not found")
    assert fault(live, "debug_traceBlockByNumber", "0x0") == (-32000, "genesis is not traceable")
    assert fault(live, "debug_traceCall", CALL)[0] == -32602
    code, message = fault(live, "debug_traceCall", CALL, "0x1", {"txIndex": "0x9"})
    assert (code, message[:38]) == (-32000, "transaction index 9 out of range for b")
    poor = CALL | {"value": "0x" + "f" * 30}
    code, message = fault(live, "debug_traceCall", poor, "latest")
    assert (code, message[:34]) == (-32000, "tracing failed: insufficient funds")


@pytest.mark.parametrize(
    ("config", "code", "words"),
    [
        ({"tracer": "callTrace"}, -32000, 'unknown tracer "callTrace": did you mean "callTracer"?'),
        (
            {"tracer": "x"},
            -32000,
            'unknown tracer "x": there are ' + ", ".join(TRACERS),
        ),
        (
            {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True, "includeEmpty": True}},
            -32000,
            "cannot use diffMode with includeEmpty",
        ),
        ({"timeout": "soon"}, -32602, 'invalid argument 1: time: invalid duration "soon"'),
        (
            {"enableMemory": "yes"},
            -32602,
            "invalid argument 1: json: cannot unmarshal string into Go struct field "
            "TraceConfig.enableMemory of type bool",
        ),
        ({"timeout": "0s"}, -32000, "execution timeout"),
    ],
)
def test_what_cannot_be_asked_for(
    live: ServerThread, config: dict[str, Any], code: int, words: str
) -> None:
    assert fault(live, "debug_traceTransaction", CREATION, config) == (code, words)


def test_an_access_list_of_a_failing_call_has_an_error(live: ServerThread) -> None:
    overrides = {EMITTER: {"code": "0x60015460006000fd"}}
    answer = ask(live, "eth_createAccessList", CALL, "latest", overrides)["result"]
    assert answer["error"] == "execution reverted"
    assert answer["accessList"] == [{"address": EMITTER, "storageKeys": [UNKNOWN]}]


def test_an_access_list_of_a_refused_call_is_refused(live: ServerThread) -> None:
    code, message = fault(live, "eth_createAccessList", CALL | {"value": "0x" + "f" * 30})
    assert code == -32000
    assert message.startswith("failed to apply transaction: 0x")
    assert "err: insufficient funds" in message
