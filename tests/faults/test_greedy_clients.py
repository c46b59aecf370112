"""Tests that expensive requests do not starve other clients, and share one gas budget."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import HOST, server_of
from fastevm.bench.programs.loops import LOOP_CODE, LOOPED
from fastevm.errors import InvalidTransaction
from fastevm.node import dev_node
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server
from tests.max_wait import MAX_WAIT

OTHER_HOST = "127.0.0.2"
CODE = {LOOPED: {"code": LOOP_CODE}}
ENDLESS = {"to": LOOPED, "gas": "0x2faf080"}
# Time limit in seconds, longer than any test.
LONG = 300.0


async def started(**limits: Any) -> Server:
    server = server_of(dev_node(), limits=Limits(**limits), threads=2)
    await server.start()
    return server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Provides a node with long time limits. Only fair scheduling lets it serve other clients."""
    made = await started(call_time=LONG, request_time=LONG, call_gas=0, request_gas=2**62)
    yield made
    await made.stop()


def client(address: str = HOST) -> aiohttp.ClientSession:
    """Returns a client that connects from ``address``, because fairness is per address."""
    connector = aiohttp.TCPConnector(local_addr=(address, 0), limit=0)
    return aiohttp.ClientSession(connector=connector)


async def ask(session: aiohttp.ClientSession, server: Server, method: str, *params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with session.post(server.urls[0], json=body) as response:
        return await response.json()


QUESTIONS: list[tuple[str, list[Any]]] = [
    ("eth_blockNumber", []),
    ("eth_call", [{"to": "0x" + "ee" * 20}, "latest"]),
    ("eth_feeHistory", ["0x5", "latest", [10, 50]]),
    ("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "latest"}]),
    ("eth_simulateV1", [{"blockStateCalls": [{"calls": [{"to": "0x" + "ee" * 20}]}]}, "latest"]),
    ("eth_createAccessList", [{"to": "0x" + "ee" * 20}, "latest"]),
]


@pytest.mark.parametrize("connections", [4, 64])
async def test_others_are_served_beside_endless_calls_of_one_client(
    server: Server, connections: int
) -> None:
    gas = {"to": LOOPED, "gas": hex(2**50)}
    many = [[{"transactions": [gas] * 500}], {"blockNumber": "latest"}, CODE]
    async with client() as greedy, client(OTHER_HOST) as other:
        asked = [
            asyncio.create_task(ask(greedy, server, "eth_callMany", *many)),
            asyncio.create_task(ask(greedy, server, "eth_callMany", *many)),
            *(
                asyncio.create_task(ask(greedy, server, "eth_call", gas, "latest", CODE))
                for _ in range(connections - 2)
            ),
        ]
        async with asyncio.timeout(MAX_WAIT):
            while server.workers.in_flight < connections:
                await asyncio.sleep(0.01)
            for method, params in QUESTIONS:
                answer = await ask(other, server, method, *params)
                assert "result" in answer, (method, answer)
        assert not any(task.done() for task in asked)
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)


@pytest.mark.parametrize("method", ["eth_sendRawTransaction", "eth_sendRawTransactionSync"])
async def test_others_are_served_while_blobs_wait_for_the_trusted_setup(
    server: Server, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Loading the trusted setup takes seconds, and every blob that arrives meanwhile must wait."""
    node, held, begun = server.node, threading.Event(), threading.Semaphore(0)

    def submit(raw: bytes) -> bytes:
        begun.release()
        held.wait(MAX_WAIT)
        raise InvalidTransaction("invalid", "no blob")

    monkeypatch.setattr(node, "submit", submit)
    monkeypatch.setattr(node, "submit_next", submit)
    async with client() as greedy, client(OTHER_HOST) as other:
        sent = [asyncio.create_task(ask(greedy, server, method, "0x03")) for _ in range(8)]
        try:
            async with asyncio.timeout(MAX_WAIT):
                while not begun.acquire(blocking=False):
                    await asyncio.sleep(0.01)
                for question, params in QUESTIONS:
                    assert "result" in await ask(other, server, question, *params)
        finally:
            held.set()
        answers = await asyncio.gather(*sent)
        assert all("error" in answer for answer in answers)


async def test_the_calls_of_one_request_share_its_time() -> None:
    server = await started(call_time=0.5, request_gas=2**62)
    many = [[{"transactions": [{"to": LOOPED, "gas": hex(10_000_000)}] * 1000}], {}, CODE]
    try:
        async with client() as session, asyncio.timeout(MAX_WAIT):
            answer = await ask(session, server, "eth_callMany", *many)
        assert "timeout" in answer["error"]["message"]
    finally:
        await server.stop()


async def test_the_calls_of_one_request_share_its_gas() -> None:
    server = await started(call_time=LONG, request_time=LONG, request_gas=1_000_000)
    looped = {"to": LOOPED, "gas": hex(400_000)}
    try:
        async with client() as session, asyncio.timeout(MAX_WAIT):
            few = [[{"transactions": [looped] * 2}], {}, CODE]
            assert len((await ask(session, server, "eth_callMany", *few))["result"][0]) == 2
            many = [[{"transactions": [looped] * 3}], {}, CODE]
            answer = await ask(session, server, "eth_callMany", *many)
            assert "more than 1000000 gas together" in answer["error"]["message"]
    finally:
        await server.stop()


async def test_the_calls_of_one_request_share_the_size_of_its_answer() -> None:
    server = await started()
    zeros = {LOOPED: {"code": "0x620f42405ff3"}}  # returns 1,000,000 bytes
    call = {"to": LOOPED}
    try:
        async with client() as session, asyncio.timeout(MAX_WAIT):
            few = [[{"transactions": [call] * 10}], {}, zeros]
            assert len((await ask(session, server, "eth_callMany", *few))["result"][0]) == 10
            many = [[{"transactions": [call] * 11}], {}, zeros]
            answer = await ask(session, server, "eth_callMany", *many)
            assert "return more than 10000000 bytes" in answer["error"]["message"]
    finally:
        await server.stop()


async def test_outputs_without_traces_count_against_the_size_of_an_answer() -> None:
    server = await started()
    returning = {"data": "0x620186a05ffd", "gas": hex(1_000_000)}  # reverts with 100,000 bytes
    try:
        async with client() as session, asyncio.timeout(MAX_WAIT):
            few = [[[returning, []]] * 3, "latest"]
            found = (await ask(session, server, "trace_callMany", *few))["result"]
            assert [len(item["output"]) for item in found] == [200_002] * 3
            many = [[[returning, []]] * 400, "latest"]
            answer = await ask(session, server, "trace_callMany", *many)
            assert "bytes" in answer["error"]["message"]
    finally:
        await server.stop()


async def test_one_client_cannot_take_all_web_sockets() -> None:
    server = await started(client_sockets=2)
    try:
        async with client() as greedy, client(OTHER_HOST) as other, asyncio.timeout(MAX_WAIT):
            opened = [await greedy.ws_connect(server.urls[0]) for _ in range(2)]
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await greedy.ws_connect(server.urls[0])
            assert refused.value.status == 503
            async with other.ws_connect(server.urls[0]) as socket:
                await socket.send_json(
                    {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
                )
                assert "result" in await socket.receive_json()
            await opened[0].close()
            while True:  # The node may need some time to notice the closed connection.
                try:
                    await greedy.ws_connect(server.urls[0])
                    break
                except aiohttp.WSServerHandshakeError:
                    await asyncio.sleep(0.05)
    finally:
        await server.stop()


async def test_requests_of_a_client_over_its_share_are_all_answered(server: Server) -> None:
    """Sends pipelined HTTP requests, HTTP requests that aiohttp handles, and WebSocket requests."""
    body = b'{"jsonrpc":"2.0","id":%d,"method":"eth_blockNumber","params":[]}'
    host, port = server.urls[0].removeprefix("http://").split(":")
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    head = head.replace(b"Host: a", b"Host: localhost")

    def post(number: int, extra: bytes = b"") -> bytes:
        text = body % number
        return head + extra + b"Content-Length: %d\r\n\r\n" % len(text) + text

    async def converse(extra: bytes) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(b"".join(post(number, extra) for number in range(200)))
            for number in range(200):
                answer = b""
                while b"}" not in answer:
                    answer += await reader.readuntil(b"}")
                assert b'"id":%d,' % number in answer
        finally:
            writer.close()

    async def over_socket(session: aiohttp.ClientSession) -> None:
        async with session.ws_connect(server.urls[0]) as socket:
            for number in range(200):
                await socket.send_bytes(body % number)
            found = {(await socket.receive_json())["id"] for _ in range(200)}
            assert found == set(range(200))

    share = server.turns.share_of(HOST)
    async with client() as session, asyncio.timeout(MAX_WAIT):
        tasks = [asyncio.create_task(converse(b"")) for _ in range(20)]
        tasks += [asyncio.create_task(converse(b"Origin: http://localhost\r\n")) for _ in range(5)]
        tasks += [asyncio.create_task(over_socket(session)) for _ in range(5)]
        while not all(task.done() for task in tasks):
            if not share.is_over:  # keeps the client over its share on any machine
                share.charge(share.began, share.began + 1.0)
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
