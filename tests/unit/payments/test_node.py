"""Tests the JSON-RPC client: batches, errors, and malformed answers."""

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from fastevm.payments import NodeClient, NodeRefusal, NodeUnreachable
from fastevm.rpc_client.asynchronous import reason_of


class Reported:
    """A transport that answers with a function's result and records the requests."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.answer = answer
        self.sent: list[Any] = []

    async def send(self, body: bytes) -> bytes:
        self.sent.append(json.loads(body))
        response = self.answer(self.sent[-1])
        return response if isinstance(response, bytes) else json.dumps(response).encode()

    async def close(self) -> None:
        pass


def results(asked: Any) -> Any:
    """Returns each call's method name as its result. Reverses the order of a batch."""
    if isinstance(asked, dict):
        return {"jsonrpc": "2.0", "id": asked["id"], "result": asked["method"]}
    return [results(item) for item in reversed(asked)]


async def test_answers_come_in_the_order_of_the_calls() -> None:
    transport = Reported(results)
    calls = [(f"method_{number}", []) for number in range(5)]
    answers = await NodeClient(transport).batch(calls)
    assert answers == [method for method, _ in calls]
    assert len(transport.sent) == 1


async def test_a_batch_that_is_too_large_is_sent_in_parts() -> None:
    transport = Reported(results)
    calls = [(f"method_{number}", []) for number in range(5)]
    answers = await NodeClient(transport, batch_limit=2).batch(calls)
    assert answers == [method for method, _ in calls]
    assert [len(sent) if isinstance(sent, list) else 1 for sent in transport.sent] == [2, 2, 1]


async def test_a_refusal_has_its_code_and_data_and_a_text_without_them() -> None:
    error = {"code": -32000, "message": "bad 0xfeed", "data": "0x08c379a0"}
    client = NodeClient(Reported(lambda asked: {"id": asked["id"], "error": error}))
    with pytest.raises(NodeRefusal) as raised:
        await client.call("eth_call", "0xfeed")
    refusal = raised.value
    assert (refusal.code, refusal.message, refusal.data) == (-32000, "bad 0xfeed", "0x08c379a0")
    assert str(refusal) == "eth_call: the node answered with error code -32000"


@pytest.mark.parametrize(
    "answer",
    [b"", b"<html>", b"[]", b"null", b'{"id": 99, "result": 1}', b'[{"id": 99}]'],
)
async def test_an_answer_that_is_none_is_an_error(answer: bytes) -> None:
    with pytest.raises(NodeUnreachable):
        await NodeClient(Reported(lambda asked: answer)).call("eth_chainId")


async def test_without_a_feed_there_is_nothing_to_subscribe_to() -> None:
    client = NodeClient(Reported(results))
    with pytest.raises(NodeUnreachable, match="no feed"):
        await anext(client.subscribe("logs"))


def test_addresses_must_be_of_the_right_kind() -> None:
    with pytest.raises(ValueError, match="not http"):
        NodeClient("ftp://host/key")
    with pytest.raises(ValueError, match="not ws"):
        NodeClient("http://host", "http://host/key")


def test_an_unknown_host_name_is_named_as_the_reason() -> None:
    error = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert reason_of(error) == "the host name cannot be resolved"


async def test_a_client_is_closed_when_its_block_ends() -> None:
    closed = []

    class Closing(Reported):
        async def close(self) -> None:
            closed.append(True)

    with pytest.raises(ValueError, match="x"):
        async with NodeClient(Closing(results)) as client:
            assert await client.call("eth_chainId") == "eth_chainId"
            raise ValueError("x")
    assert closed == [True]
