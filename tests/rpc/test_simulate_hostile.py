"""Tests that hostile payloads of eth_simulateV1 fail as documented, in time and bounded memory."""

import json
import resource
import time
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcUnreachable, request_body

from .simulating import RICH, A, B, C, ask, blocks, one_block, post, refusal

# Limit of CPU seconds. A request has a deadline of 5 s.
SECONDS = 8.0
MEGABYTES = 400  # limit for the growth of memory over all these requests
SELF_CALL = "0x5f5f5f5f5f305af15000"


@pytest.fixture(scope="module", autouse=True)
def bounded_memory() -> Any:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MEGABYTES * 1024


@pytest.fixture(autouse=True)
def in_time() -> Any:
    started = time.process_time()
    yield
    assert time.process_time() - started < SECONDS


@pytest.fixture(params=["geth", "preconf"])
def url(live: ServerThread, request: pytest.FixtureRequest) -> str:
    return live.url(request.param)


def test_three_hundred_blocks_are_too_many(url: str) -> None:
    payload = {"blockStateCalls": [{}] * 300}
    assert refusal(url, payload) == (-38026, "too many blocks")


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 2**256 - 1])
def test_a_gap_of_any_size_is_too_many_blocks(url: str, number: int) -> None:
    payload = {"blockStateCalls": [{"blockOverrides": {"number": hex(number)}}]}
    assert refusal(url, payload) == (-38026, "too many blocks")


def test_ten_thousand_and_one_calls_are_too_many(url: str) -> None:
    entries = [{"calls": [{}] * 5_000}, {"calls": [{}] * 5_000}, {"calls": [{}]}]
    assert refusal(url, {"blockStateCalls": entries})[0] == -38026


def test_a_body_of_thirty_megabytes_is_refused_unread(url: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":["' + b"0" * 30_000_000
    with JsonRpcClient(url) as client, pytest.raises(RpcUnreachable) as caught:
        client.send(body + b'"]}')
    # The node may close the connection before the client has read the status.
    assert caught.value.status in (413, None)


def test_infinite_loops_share_one_budget_of_gas(url: str) -> None:
    state = {C: {"code": "0x5b5f56"}}
    calls = [{"from": A, "to": C}] * 50
    code, message = refusal(url, one_block(*calls, state=state))
    assert code == -38013
    assert message.startswith("err: intrinsic gas too low: have 0, want 21000")


@pytest.mark.parametrize("size", ["63ffffffff", "7f" + "ff" * 32])
def test_a_memory_bomb_runs_out_of_gas(url: str, size: str) -> None:
    state = {C: {"code": "0x" + size + "5f5f3900"}}
    found = blocks(url, one_block({"from": A, "to": C}, state=state))[0]["calls"][0]
    assert found["status"] == "0x0"
    assert "out of gas" in json.dumps(found["error"])


def test_large_outputs_of_many_calls_are_bounded(url: str) -> None:
    # Each call costs about 30,000 gas and returns 50,000 bytes.
    calls = [{"from": A, "to": C, "gas": "0x8000"}] * 1_500
    state = {C: {"code": "0x61c3505ff3"}}
    answer = ask(url, one_block(*calls, state=state))
    assert answer["error"] == {"code": -32003, "message": "response too large"}


def test_calls_nest_a_thousand_deep(url: str) -> None:
    found = blocks(url, one_block({"from": A, "to": C}, state={C: {"code": SELF_CALL}}))
    assert found[0]["calls"][0]["status"] == "0x1"


def test_a_call_tree_a_thousand_deep_is_answered(url: str) -> None:
    state = {C: {"code": SELF_CALL}}
    payload = one_block({"from": A, "to": C}, state=state, returnCallTree=True)
    with JsonRpcClient(url, timeout=SECONDS) as client:
        answer = client.send(request_body("eth_simulateV1", [payload, "latest"]))
    assert answer.count(b'"type":"CALL"') > 500
    assert answer.count(b"{") == answer.count(b"}")
    assert answer.count(b"[") == answer.count(b"]")


def test_call_trees_with_large_inputs_are_bounded(url: str) -> None:
    # Each of 100 calls passes 100,000 bytes to IDENTITY seven times.
    code = "0x" + "5f5f620186a05f5f5f5af150" * 7 + "00"
    calls = [{"from": A, "to": C, "gas": "0x61a80"}] * 100
    payload = one_block(*calls, state={C: {"code": code}}, returnCallTree=True)
    assert refusal(url, payload) == (-32003, "response too large")


def test_two_hundred_and_fifty_six_blocks_of_calls_end_in_time(url: str) -> None:
    entries: list[Any] = [{"calls": [{"from": A, "to": B, "value": "0x1"}] * 4} for _ in range(256)]
    entries[0]["stateOverrides"] = RICH
    assert len(blocks(url, {"blockStateCalls": entries})) == 256


def test_deeply_nested_json_is_no_crash(url: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":[' + b"[" * 100_000
    answer = post(url, body + b"]" * 100_000 + b"]}")
    assert answer["error"]["code"] in (-32700, -32600, -32602)


def test_many_overrides_are_applied(url: str) -> None:
    state = {"0x" + i.to_bytes(20, "big").hex(): {"balance": "0x1"} for i in range(1000, 6000)}
    slots = {"0x" + i.to_bytes(32, "big").hex(): "0x" + "11" * 32 for i in range(10_000)}
    state[C] = {"stateDiff": slots}
    assert len(blocks(url, one_block(state=state))) == 1
