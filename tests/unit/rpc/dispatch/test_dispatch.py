"""Tests the JSON-RPC layer: forms of requests, batches, limits, failing handlers."""

import asyncio
import json
import logging
import threading
import time
from typing import Any

import pytest

from fastevm.errors import StateNotKnown
from fastevm.rpc.dispatch.dispatcher import METHODS
from fastevm.rpc.dispatch.registry import Method, Param, RunOn, method
from fastevm.rpc.errors import RpcError
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.conftest import Caller, MakeCaller


def refusal(code: int, message: str, call_id: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": message}}


PARSE_ERROR = refusal(-32700, "parse error")


def request(**members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", **members})


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Provides a function that registers a handler for the duration of the test."""

    def register(name: str, work: Any, *params: Param, run_on: RunOn = RunOn.WORKER) -> None:
        monkeypatch.setitem(METHODS, name, Method(name, work, params, run_on))

    return register


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"{",
        b"[",
        b"[1,",
        b'{"jsonrpc":"2.0",}',
        b"nonsense",
        b'{"a":"\xff\xfe"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":' + b"[" * 100_000,
    ],
)
async def test_unreadable_json_is_a_parse_error(caller: Caller, body: bytes) -> None:
    assert await caller.send(body) == PARSE_ERROR


@pytest.mark.parametrize("body", ["1", '"a"', "null", "true", "{}", '{"id":{}}'])
async def test_json_that_is_no_request_is_invalid(caller: Caller, body: str) -> None:
    assert await caller.send(body) == refusal(-32600, "invalid request")


@pytest.mark.parametrize(
    "members",
    [{"jsonrpc": "1.0"}, {"jsonrpc": 2.0}, {"method": ""}, {"method": 5}, {"method": None}],
)
async def test_an_invalid_request_echoes_a_scalar_id(
    caller: Caller, members: dict[str, Any]
) -> None:
    assert await caller.send(request(id="x", **members)) == refusal(-32600, "invalid request", "x")


@pytest.mark.parametrize("call_id", [[], {}, [1], {"a": 1}])
async def test_an_id_must_be_a_scalar(caller: Caller, call_id: Any) -> None:
    assert await caller.send(request(id=call_id)) == refusal(-32600, "invalid request")


@pytest.mark.parametrize(
    "call_id", ["1", "-7", "0", "null", '"a"', '""', "1.5", "123456789012345678901234567890"]
)
async def test_the_id_is_echoed_as_it_was_sent(caller: Caller, call_id: str) -> None:
    body = f'{{"id": {call_id} ,"jsonrpc":"2.0","method":"eth_chainId"}}'
    answer = await caller.dispatcher.answer(body.encode())
    assert answer.startswith(b'{"jsonrpc":"2.0","id":' + call_id.encode() + b',"result":')


async def test_unknown_members_are_ignored(caller: Caller) -> None:
    assert (await caller.send(request(extra={"a": [1]})))["result"] == "0xc72dd9d5e883e"


async def test_an_unknown_method_is_named(caller: Caller) -> None:
    message = "the method eth_nothing does not exist/is not available"
    assert await caller.error("eth_nothing") == (-32601, message)


async def test_a_lone_surrogate_in_a_name_does_not_break_the_answer(caller: Caller) -> None:
    answer = await caller.send('{"jsonrpc":"2.0","id":1,"method":"\\ud800"}')
    assert answer["error"]["code"] in (-32601, -32600, -32700)


async def test_a_long_method_name_is_refused(caller: Caller) -> None:
    answer = await caller.send(request(method="a" * 2049))
    assert answer == refusal(-32600, "method name too long: 2049 > 2048", 1)


@pytest.mark.parametrize("params", [{}, "x", 5, True])
async def test_params_must_be_an_array(caller: Caller, params: Any) -> None:
    assert await caller.send(request(params=params)) == refusal(-32602, "non-array args", 1)


@pytest.mark.parametrize("params", [None, []])
async def test_no_params_are_an_empty_array(caller: Caller, params: Any) -> None:
    assert "result" in await caller.send(request(params=params))


async def test_missing_bad_and_superfluous_arguments_are_distinguished(caller: Caller) -> None:
    address = "0x" + "00" * 20
    assert await caller.error("eth_getBalance") == (
        -32602,
        "missing value for required argument 0",
    )
    assert await caller.error("eth_getBalance", None) == (
        -32602,
        "missing value for required argument 0",
    )
    assert await caller.error("eth_getBalance", address, "5") == (
        -32602,
        "invalid argument 1: hex string without 0x prefix",
    )
    assert await caller.error("eth_getBalance", address, "latest", 1) == (
        -32602,
        "too many arguments, want at most 2",
    )
    assert await caller.result("eth_getBalance", address) == "0x0"
    assert await caller.result("eth_getBalance", address, None) == "0x0"


async def test_a_notification_is_executed_and_not_answered(caller: Caller, handler: Any) -> None:
    seen = []
    handler("test_note", lambda context: seen.append(1))
    assert await caller.send('{"jsonrpc":"2.0","method":"test_note"}') is None
    assert await caller.send('{"jsonrpc":"2.0","method":"test_nothing"}') is None
    assert seen == [1]


async def test_a_crashed_handler_is_logged_and_answered(
    caller: Caller, handler: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler("test_crash", lambda context: 1 // 0)
    with caplog.at_level(logging.ERROR, "fastevm.rpc"):
        assert await caller.error("test_crash") == (-32603, "method handler crashed")
    assert "test_crash" in caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_a_result_that_is_no_json_counts_as_a_crash(caller: Caller, handler: Any) -> None:
    handler("test_odd", lambda context: object(), run_on=RunOn.LOOP)
    assert await caller.error("test_odd") == (-32603, "method handler crashed")


async def test_a_run_on_the_state_of_another_block_is_an_error_and_no_endless_retry(
    caller: Caller, handler: Any
) -> None:
    threads: list[int] = []

    def reads(context: Any) -> None:
        threads.append(threading.get_ident())
        raise StateNotKnown("the run read the state of another block")

    handler("test_reads", reads, run_on=RunOn.LIGHT)
    assert await caller.error("test_reads") == (-32000, "the run read the state of another block")
    loop, worker = threads
    assert loop == threading.get_ident() != worker


async def test_a_handler_that_takes_too_long_times_out(
    make_caller: MakeCaller, handler: Any
) -> None:
    caller = make_caller(request_time=0.05)
    handler("test_slow", lambda context: time.sleep(0.3))
    assert await caller.error("test_slow") == (-32002, "request timed out")


async def test_work_beyond_the_queue_limit_is_refused_at_once(
    make_caller: MakeCaller, handler: Any
) -> None:
    caller = make_caller(work_queue=2)
    handler("test_slow", lambda context: time.sleep(0.1))
    answers = await asyncio.gather(*(caller.ask("test_slow") for _ in range(4)))
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes == [None, None, -32005, -32005]
    assert "result" in await caller.ask("test_slow")


async def test_the_loop_goes_on_while_workers_work(caller: Caller, handler: Any) -> None:
    hold = threading.Event()
    handler("test_slow", lambda context: hold.wait(MAX_WAIT))
    slow = asyncio.create_task(caller.result("test_slow"))
    await caller.result("eth_chainId")
    assert not slow.done()
    hold.set()
    assert await slow is True


async def test_a_batch_is_answered_in_order_without_notifications(caller: Caller) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 2, "method": "eth_blockNumber"},
        {"jsonrpc": "2.0", "method": "eth_blockNumber"},
        {"jsonrpc": "2.0", "id": "b", "method": "eth_nothing"},
        5,
        {"jsonrpc": "2.0", "id": None, "method": "eth_chainId"},
    ]
    answers = await caller.send(json.dumps(batch))
    assert [answer["id"] for answer in answers] == [2, "b", None, None]
    assert answers[0]["result"] == "0x2"
    assert answers[1]["error"]["code"] == -32601
    assert answers[2] == refusal(-32600, "invalid request")


async def test_a_batch_of_notifications_has_no_answer(caller: Caller) -> None:
    assert await caller.send('[{"jsonrpc":"2.0","method":"eth_chainId"}]') is None


async def test_an_empty_batch_is_a_single_error(caller: Caller) -> None:
    assert await caller.send(" [ ] ") == refusal(-32600, "empty batch")


async def test_a_batch_over_the_limit_is_one_error_with_the_first_id(caller: Caller) -> None:
    calls = [{"jsonrpc": "2.0", "id": 7, "method": "eth_chainId"}] * 1000
    assert len(await caller.send(json.dumps(calls))) == 1000
    answer = await caller.send(json.dumps([*calls, calls[0]]))
    assert answer == [refusal(-32600, "batch too large", 7)]


async def test_a_batch_stops_answering_at_the_size_limit(
    make_caller: MakeCaller, handler: Any
) -> None:
    caller = make_caller(batch_response_size=1000)
    handler("test_big", lambda context: "x" * 600)
    batch = [{"jsonrpc": "2.0", "id": n, "method": "test_big"} for n in range(4)]
    batch.append({"jsonrpc": "2.0", "method": "test_big"})
    answers = await caller.send(json.dumps(batch))
    assert ["result" in answer for answer in answers] == [True, True, False, False]
    assert answers[3] == refusal(-32003, "response too large", 3)


async def test_a_single_answer_may_be_larger_than_a_batch(
    make_caller: MakeCaller, handler: Any
) -> None:
    caller = make_caller(batch_response_size=1000)
    handler("test_big", lambda context: "x" * 40_000_000)
    assert len(await caller.result("test_big")) == 40_000_000


async def test_requests_and_errors_are_counted(caller: Caller) -> None:
    await caller.ask("eth_chainId")
    await caller.ask("eth_nothing")
    await caller.send("{")
    text = caller.dispatcher.metrics.render({"head_number": 2})
    assert 'fastevm_rpc_requests_total{method="eth_chainId"} 1' in text
    assert 'fastevm_rpc_errors_total{method="unknown",code="-32601"} 1' in text
    assert "fastevm_head_number 2" in text


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        method("eth_chainId")(lambda context: None)


def test_an_error_shows_its_reason() -> None:
    assert str(RpcError("parse_error")) == "parse_error"
