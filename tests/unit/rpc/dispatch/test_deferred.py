"""Tests work that a handler defers until the response is sent: order, thread, and one run."""

import asyncio
import json
from threading import Thread
from typing import Any

import pytest

from fastevm import simulate
from fastevm.node import Mining, Node, dev_node
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.deferred import Deferred
from fastevm.rpc.transport.connection import Connection
from fastevm.rpc.transport.server import Listener, Server

TO = "0x" + "aa" * 20


def leaving(work: list[str], deferred: Deferred, taken: list[bool]) -> Any:
    """Returns a handler that defers work. ``taken`` gets whether ``deferred`` accepts the work."""

    def respond(body: bytes, _client: str) -> bytes:
        taken.append(deferred.accept(lambda: work.append(body.decode())))
        return b"answered"

    return deferred.answering(respond)


def test_work_of_a_request_is_done_once_and_after_it() -> None:
    deferred, work, taken = Deferred(), [], []
    respond = leaving(work, deferred, taken)
    assert respond(b"{1}", "") == b"answered"
    assert work == []
    deferred.run()
    deferred.run()
    assert (work, taken) == (["{1}"], [True])


def test_calls_of_a_batch_leave_nothing() -> None:
    deferred, taken = Deferred(), []
    leaving([], deferred, taken)(b"[{}]", "")
    assert taken == [False]


def test_nothing_is_taken_between_requests_or_of_other_threads() -> None:
    deferred, taken = Deferred(), []

    def respond(_body: bytes, _client: str) -> bytes:
        other = Thread(target=lambda: taken.append(deferred.accept(print)))
        other.start()
        other.join()
        return b""

    deferred.answering(respond)(b"{}", "")
    taken.append(deferred.accept(print))
    assert taken == [False, False]


def test_work_that_fails_is_logged_and_the_rest_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    deferred, work = Deferred(), []

    def respond(_body: bytes, _client: str) -> bytes:
        deferred.accept(lambda: 1 // 0)
        deferred.accept(lambda: work.append("done"))
        return b""

    deferred.answering(respond)(b"{}", "")
    deferred.run()
    assert work == ["done"]
    assert "ZeroDivisionError" in caplog.text


async def asked(url: str, *bodies: Any) -> list[Any]:
    """Sends all bodies in one write over one connection. Returns the answers."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for body in bodies:
        text = json.dumps(body).encode()
        head = f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
    answers = []
    for _ in bodies:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        size = next(int(line.split(":")[1]) for line in lines if line.startswith("content-length"))
        answers.append(json.loads(await reader.readexactly(size)))
    writer.close()
    return answers


def call(method: str, *params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def served(node: Node, *bodies: Any) -> list[Any]:
    async def run() -> list[Any]:
        server = Server(node, simulate, [Listener(DIALECTS["geth"].of_development(), port=0)])
        await server.start()
        try:
            return await asked(server.urls[0], *bodies)
        finally:
            await server.stop()

    return asyncio.run(run())


SEND = call("eth_sendTransaction", {"to": TO, "value": "0x1"})


def test_the_hash_is_sent_before_the_block_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    send, mine, events = Connection.send, node.producer.mine_each, []

    def sending(self: Connection, body: Any) -> None:
        events.append("sent")
        send(self, body)

    def mining() -> Any:
        events.append("mined")
        return mine()

    monkeypatch.setattr(Connection, "send", sending)
    monkeypatch.setattr(node.producer, "mine_each", mining)
    served(node, SEND)
    assert events == ["sent", "mined"]


def test_the_next_request_finds_the_block_or_the_return_to_a_snapshot() -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    answers = served(
        node,
        call("evm_snapshot"),
        SEND,
        call("eth_blockNumber"),
        call("eth_getBalance", TO, "latest"),
        SEND,
        call("eth_getBalance", TO, "latest"),
        call("evm_revert", "0x1"),
        call("eth_blockNumber"),
        call("eth_getBalance", TO, "latest"),
        call("evm_revert", "0x1"),
    )
    found = [answer["result"] for answer in answers]
    assert found[2:4] == ["0x1", "0x1"]
    assert found[5:] == ["0x2", True, "0x0", "0x0", False]


def test_a_later_call_of_a_batch_sees_the_block() -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    (answers,) = served(node, [SEND, call("eth_blockNumber"), SEND, call("eth_blockNumber")])
    assert [answer["result"] for answer in answers[1::2]] == ["0x1", "0x2"]


def test_a_node_with_blocks_at_an_interval_leaves_nothing() -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    node.development.defer_to(lambda work: pytest.fail("left"))
    node.development.miner.set_interval(600.0, automine=True)
    try:
        assert not node.development.defer(print)
    finally:
        node.development.miner.stop()
