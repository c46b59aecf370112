"""Tests HTTP connections byte by byte: the fast path, and delegation to aiohttp."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.dispatcher import METHODS
from fastevm.rpc.dispatch.registry import Method, RunOn
from fastevm.rpc.limits import Limits
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.transport.access import Access
from fastevm.rpc.transport.connection import KNOWN_HEADS, LARGE, HttpListener
from fastevm.rpc.transport.server import Listener, Server
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

CALL = b'{"jsonrpc":"2.0","id":%d,"method":"eth_chainId"}'
CHAIN_ID = "0xc72dd9d5e883e"


def post(body: bytes, *lines: str, version: str = "1.1") -> bytes:
    head = [f"POST / HTTP/{version}", "Host: localhost", "Content-Type: application/json", *lines]
    if not any(line.lower().startswith(("transfer-encoding", "content-length")) for line in lines):
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    listener = Listener(DIALECTS["preconf"], port=0)
    limits = Limits(body_size=10_000)
    node = FakeNode(chain_of(3))
    node.development.is_present = True  # enables methods that a test adds, too
    server = Server(node, FakeSimulator(), [listener], limits=limits, threads=1)
    await server.start()
    yield server
    await server.stop()


class Client:
    """A socket that sends bytes and reads answers."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Returns status, headers and body of the next answer."""
        head = (await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), MAX_WAIT)).decode()
        first, *lines = head.strip().split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        return int(first.split()[1]), fields, body

    async def result(self) -> Any:
        """Returns the result of the next answer."""
        status, _, body = await self.answer()
        assert status == 200
        return json.loads(body)["result"]


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    port = int(server.urls[0].rpartition(":")[2])
    made = Client(*await asyncio.open_connection("127.0.0.1", port))
    yield made
    made.writer.close()


def on_fast_path(server: Server) -> int:
    """Returns how many connections were not delegated to aiohttp."""
    connections = (connection for opened in server._open for connection in opened.http.connections)
    return sum(connection.delegate is None for connection in connections)


async def test_a_usual_request_is_answered_on_the_fast_path(server: Server, client: Client) -> None:
    client.writer.write(post(CALL % 1))
    status, fields, body = await client.answer()
    assert status == 200
    assert fields["content-type"] == "application/json"
    assert "access-control-allow-origin" not in fields
    assert "date" in fields
    assert json.loads(body) == {"jsonrpc": "2.0", "id": 1, "result": CHAIN_ID}
    assert on_fast_path(server) == 1


NODE_FETCH = (  # the request of Node.js 20, and so of viem
    "connection: keep-alive", "accept: */*", "accept-language: *", "sec-fetch-mode: cors",
    "user-agent: node", "accept-encoding: gzip, deflate",
)  # fmt: skip
REQUESTS = (  # the request of Python's requests, and so of web3.py
    "User-Agent: web3.py/7.16.0", "Accept-Encoding: gzip, deflate", "Accept: */*",
    "Connection: keep-alive",
)  # fmt: skip


@pytest.mark.parametrize("lines", [NODE_FETCH, REQUESTS])
async def test_what_clients_send_takes_the_fast_path(
    server: Server, client: Client, lines: tuple[str, ...]
) -> None:
    client.writer.write(post(CALL % 1, *lines))
    assert await client.result() == CHAIN_ID
    assert on_fast_path(server) == 1


async def test_requests_in_one_piece_are_answered_in_their_order(client: Client) -> None:
    client.writer.write(b"".join(post(CALL % number) for number in range(50)))
    for number in range(50):
        _, _, body = await client.answer()
        assert json.loads(body)["id"] == number


async def test_a_body_may_come_in_pieces(server: Server, client: Client) -> None:
    request = post(CALL % 7 + b" " * 3_000)
    head = request.index(b"\r\n\r\n") + 4
    for piece in (request[:head], request[head : head + 10], request[head + 10 :]):
        client.writer.write(piece)
        await client.writer.drain()
        await asyncio.sleep(0.02)
    assert await client.result() == CHAIN_ID
    assert on_fast_path(server) == 1


@pytest.mark.parametrize("at", [1, 10, 40, 80])
async def test_a_head_may_come_in_pieces(server: Server, client: Client, at: int) -> None:
    request = post(CALL % 1)
    client.writer.write(request[:at])
    await asyncio.sleep(0.05)
    client.writer.write(request[at:])
    assert await client.result() == CHAIN_ID
    assert on_fast_path(server) == 1


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (post(CALL % 1, "X-Anything: 1"), 200),
        (post(CALL % 1, "Connection: close"), 200),
        (post(CALL % 1, version="1.0"), 200),
        (post(CALL % 1, "Expect: 100-continue"), 100),
        (post(b"2f\r\n" + CALL % 1 + b"\r\n0\r\n\r\n", "Transfer-Encoding: chunked"), 200),
        (post(b" " * 10_001), 413),
        (post(CALL % 1).replace(b"application/json", b"text/plain"), 415),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", 404),
        (post(CALL % 1, "Content-Length: 46", "Content-Length: 47"), 400),
        (b"nonsense\r\n\r\n", 400),
    ],
)
async def test_any_other_request_is_answered_by_aiohttp(
    server: Server, client: Client, request_bytes: bytes, status: int
) -> None:
    client.writer.write(post(CALL % 1) + request_bytes)
    assert await client.result() == CHAIN_ID
    assert (await client.answer())[0] == status
    assert on_fast_path(server) == 0


async def test_large_and_small_answers_follow_each_other(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "x" * (LARGE + 1)
    place = RunOn.LOOP
    monkeypatch.setitem(METHODS, "test_large", Method("test_large", lambda _: large, (), place))
    ask = post(b'{"jsonrpc":"2.0","id":1,"method":"test_large"}')
    client.writer.write((ask + post(CALL % 2)) * 3)
    for _ in range(3):
        assert await client.result() == large
        assert await client.result() == CHAIN_ID


async def test_reading_goes_on_after_many_requests_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "fastevm.rpc.transport.connection.LOOP_TIME", -1.0
    )  # each request in a separate loop iteration
    monkeypatch.setattr("fastevm.rpc.transport.connection.AHEAD_LIMIT", 1_000)
    many = 100
    for _ in range(3):
        for _ in range(2):  # the second half arrives while the first is being answered
            client.writer.write(b"".join(post(CALL % number) for number in range(many)))
            assert await client.result() == CHAIN_ID
        for _ in range(2 * many - 2):
            assert await client.result() == CHAIN_ID
    client.writer.write(post(CALL % 1) * many)
    assert await client.result() == CHAIN_ID
    client.writer.write(post(CALL % 1) * many + post(CALL % 1, "X-Odd: 1"))
    for _ in range(2 * many):
        assert await client.result() == CHAIN_ID
    client.writer.write(post(CALL % 1))  # aiohttp handles the connection now
    assert await client.result() == CHAIN_ID


async def test_a_call_that_waits_holds_back_those_behind_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(context: Any) -> str:
        await asyncio.sleep(0.1)
        return "waited"

    monkeypatch.setitem(METHODS, "test_wait", Method("test_wait", wait, (), RunOn.TASK))
    client.writer.write(post((CALL % 1).replace(b"eth_chainId", b"test_wait")) + post(CALL % 2))
    assert await client.result() == "waited"
    assert await client.result() == CHAIN_ID


async def test_a_client_that_leaves_stops_its_call(
    server: Server, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = asyncio.Event()

    async def wait(context: Any) -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            stopped.set()
            raise

    monkeypatch.setitem(METHODS, "test_wait", Method("test_wait", wait, (), RunOn.TASK))
    client.writer.write(post((CALL % 1).replace(b"eth_chainId", b"test_wait")))
    await asyncio.sleep(0.05)
    client.writer.transport.abort()
    await asyncio.wait_for(stopped.wait(), MAX_WAIT)


async def test_silent_connections_are_closed(server: Server, client: Client) -> None:
    client.writer.write(post(CALL % 1))
    assert await client.result() == CHAIN_ID
    listener = server._open[0].http
    (connection,) = listener.connections
    connection.check_clocks(connection.heard + listener.keepalive - 1)
    client.writer.write(post(CALL % 2))
    assert await client.result() == CHAIN_ID
    connection.check_clocks(connection.heard + listener.keepalive + 1)
    assert await client.reader.read() == b""


async def test_the_server_stops_with_connections_open(server: Server, client: Client) -> None:
    client.writer.write(post(CALL % 1))
    assert await client.result() == CHAIN_ID
    await server.stop()
    assert await client.reader.read() == b""


def test_heads_are_remembered_within_a_limit() -> None:
    listener = HttpListener(
        lambda body, client: body, lambda connection, data: None,
        access=Access(hosts=frozenset("*")), types=frozenset(("application/json",)), headers={},
        limits=Limits(), metrics=Metrics(), keepalive=1.0,
    )  # fmt: skip
    for number in range(3 * KNOWN_HEADS):
        assert listener.head_of(post(b"{}", f"User-Agent: {number}")) is not None
        assert len(listener._known) <= KNOWN_HEADS
