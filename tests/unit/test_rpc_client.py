"""Tests the JSON-RPC client: ids and order, errors, broken connections, invalid answers."""

import asyncio
import gzip
import json
import select
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient, open_session
from fastevm.rpc_client.blocking import JsonRpcClient, call_once
from fastevm.rpc_client.messages import (
    AnswerTooLarge,
    RpcRefusal,
    RpcUnreachable,
    answers_in,
    request_body,
    request_of,
    shown_address,
)

Reply = Callable[[Any], Any]
REFUSAL = {"code": -32000, "message": "no", "data": "0x01"}


def respond(asked: Any) -> Any:
    """Returns each call's parameters as its result. Reverses a batch."""
    if isinstance(asked, list):
        return [respond(item) for item in reversed(asked)]
    if asked["method"] == "refuse":
        return {"jsonrpc": "2.0", "id": asked["id"], "error": REFUSAL}
    return {"jsonrpc": "2.0", "id": asked["id"], "result": asked["params"]}


class Handler(BaseHTTPRequestHandler):
    """Answers with `respond`. If the path is a number, the number is the status of the answer."""

    protocol_version = "HTTP/1.1"
    connections = 0

    def setup(self) -> None:
        super().setup()
        type(self).connections += 1

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.strip("/")
        body = b"{" if path == "broken" else json.dumps(respond(json.loads(asked))).encode()
        if path == "key":
            body = json.dumps(
                {"id": json.loads(asked)["id"], "result": self.headers["Authorization"]}
            ).encode()
        if path.startswith("gzip") and "gzip" in self.headers["Accept-Encoding"]:
            body = gzip.compress(body)[: -4 if path == "gzip-cut" else None]
            self.close_connection = path == "gzip-cut"
        self.send_response(int(path) if path.isdigit() else 200)
        if path.startswith("gzip"):
            self.send_header("Content-Encoding", "gzip" if "gzip" in path else "identity")
        self.send_header("Content-Length", str(len(body) + (5 if path == "cut" else 0)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = path in ("once", "cut")

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Handler.connections = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_calls_share_a_connection(url: str) -> None:
    with JsonRpcClient(url) as client:
        assert [client.call("echo", number) for number in range(3)] == [[0], [1], [2]]
    assert Handler.connections == 1


def test_a_connection_that_the_node_closed_is_opened_again(url: str) -> None:
    with JsonRpcClient(url + "/once") as client:
        for number in range(3):
            assert client.call("echo", number) == [number]
            # waits until the connection's end has arrived
            select.select([client._connection.sock], [], [], 10)
    assert Handler.connections == 3


def test_answers_of_a_batch_come_in_the_order_of_its_calls(url: str) -> None:
    with JsonRpcClient(url) as client:
        first, second, third = client.batch([("echo", [1]), ("refuse", []), ("echo", [3])])
        assert client.batch([]) == []
    assert (first, third) == ([1], [3])
    assert isinstance(second, RpcRefusal)
    assert (second.code, second.message, second.data) == (-32000, "no", "0x01")


def test_a_refusal_is_raised_by_a_single_call(url: str) -> None:
    with pytest.raises(RpcRefusal, match="no"):
        call_once(url, "refuse")


@pytest.mark.parametrize(("path", "reason"), [("/broken", "not JSON"), ("/503", "HTTP status 503")])
def test_an_answer_that_is_none_is_an_error(url: str, path: str, reason: str) -> None:
    with JsonRpcClient(url + path) as client, pytest.raises(RpcUnreachable, match=reason):
        client.call("echo")


def test_an_answer_may_be_compressed(url: str) -> None:
    with JsonRpcClient(url + "/gzip", compressed=True) as client:
        assert client.call("echo", "x" * 10_000) == ["x" * 10_000]
        answer = client.post(request_body("echo", ["x" * 10_000]))
        assert answer.wire_bytes < 1_000 < len(answer.body)
    with (
        JsonRpcClient(url + "/gzip", compressed=True, max_answer=5_000) as client,
        pytest.raises(AnswerTooLarge, match="more than 5000 bytes"),
    ):
        client.call("echo", "x" * 10_000)


def test_a_compressed_answer_that_was_not_requested_is_refused(url: str) -> None:
    with (
        JsonRpcClient(url + "/gzip", headers={"Accept-Encoding": "gzip"}) as client,
        pytest.raises(RpcUnreachable, match="compressed, which was not requested"),
    ):
        client.call("echo", 1)


CUT = [("/cut", "lacks its last 5"), ("/gzip-cut", "truncated")]


@pytest.mark.parametrize(("path", "reason"), CUT)
def test_an_answer_that_is_cut_is_an_error(url: str, path: str, reason: str) -> None:
    with (
        JsonRpcClient(url + path, compressed=True) as client,
        pytest.raises(RpcUnreachable, match=reason),
    ):
        client.call("echo", 1)


def test_headers_go_with_every_request_and_a_status_can_be_read(url: str) -> None:
    with JsonRpcClient(url + "/503", headers={"X-Key": "abc"}) as client:
        answer = client.post(request_body("echo", [1]))
    assert (answer.status, json.loads(answer.body)["result"]) == (503, [1])


def test_an_answer_over_the_limit_is_an_error(url: str) -> None:
    with JsonRpcClient(url, max_answer=50) as client:
        with pytest.raises(RpcUnreachable, match="more than 50 bytes"):
            client.call("echo", "x" * 100)
        assert client.call("echo", 1) == [1]


def test_a_node_that_is_not_there_is_an_error_without_the_secrets_of_its_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://user:secret@127.0.0.1:{unused.getsockname()[1]}/secret"
        with pytest.raises(RpcUnreachable) as raised:
            call_once(address, "echo")
    assert "secret" not in str(raised.value)


def test_user_and_password_of_the_address_are_sent(url: str) -> None:
    address = url.replace("http://", "http://me:p%40ss@") + "/key"
    assert call_once(address, "echo") == "Basic bWU6cEBzcw=="


@pytest.mark.parametrize("address", ["ftp://host", "host:8545", "http://", "http://[", ""])
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    for client in (JsonRpcClient, AsyncJsonRpcClient, WebSocketClient):
        with pytest.raises(ValueError, match="address"):
            client(address)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("localhost:8545", "localhost:8545"),
        ("eth.example.com/v2/s3cr3t?key=s3cr3t", "eth.example.com"),
        ("me:s3cr3t@10.0.0.1:8545/", "10.0.0.1:8545"),
        ("s3cr3t", "***"),
        ("", "***"),
    ],
)
def test_an_address_without_a_scheme_is_answered_with_the_scheme(address: str, shown: str) -> None:
    with pytest.raises(ValueError, match="begin it with http://") as found:
        JsonRpcClient(address)
    assert str(found.value) == f"address {shown!r} is not http: begin it with http://"
    with pytest.raises(ValueError, match="begin it with ws://"):
        WebSocketClient(address)


def test_an_address_is_shown_without_user_path_and_query() -> None:
    assert shown_address("wss://user:pass@host:8546/v2/key?x=1") == "wss://host:8546"


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b'{"id": 9, "result": 1}', b'[{"id": []}, 7]']
)
def test_a_body_without_the_answer_is_an_error(body: bytes) -> None:
    with pytest.raises(RpcUnreachable):
        answers_in(body, [request_of("eth_chainId")])


def test_an_error_of_another_shape_is_a_refusal_too() -> None:
    refusals = answers_in(
        b'[{"id": 1, "error": "no"}, {"id": 2, "error": {"code": "x"}}]',
        [request_of("a", number=1), request_of("b", number=2)],
    )
    assert [refusal.code for refusal in refusals] == [0, 0]


def test_a_body_is_written_without_spaces() -> None:
    body = request_body("eth_call", [{"to": "0x00"}, "latest"])
    assert b" " not in body
    assert json.loads(body)["params"] == [{"to": "0x00"}, "latest"]


async def test_on_an_event_loop_the_same_holds(url: str) -> None:
    async with AsyncJsonRpcClient(url) as client:
        assert await client.call("echo", 7) == [7]
        first, second = await client.batch([("echo", [1]), ("refuse", [])])
        assert first == [1]
        assert isinstance(second, RpcRefusal)
    for path, reason in (("/broken", "not JSON"), ("/503", "HTTP status 503")):
        async with AsyncJsonRpcClient(url + path) as client:
            with pytest.raises(RpcUnreachable, match=reason):
                await client.call("echo")
    async with AsyncJsonRpcClient(url, max_answer=50) as client:
        with pytest.raises(RpcUnreachable, match="more than 50 bytes"):
            await client.call("echo", "x" * 100)


async def converse(request: web.Request) -> web.WebSocketResponse:
    """Answers calls in pairs, the second call first. Sends notifications, and closes on request."""
    connection = web.WebSocketResponse()
    await connection.prepare(request)
    held: list[Any] = []
    async for message in connection:
        asked = json.loads(message.data)
        if asked["method"] == "end":
            break
        if asked["method"] == "note":
            await connection.send_str("no JSON")
            params = {"subscription": "0x1", "result": asked["params"][0]}
            await connection.send_json({"method": "eth_subscription", "params": params})
        held.append(respond(asked))
        if asked["method"] != "hold":
            for response in reversed(held):
                await connection.send_json(response)
            held.clear()
    return connection


@pytest.fixture
async def socket_url() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/", converse)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield f"ws://{host}:{port}/"
    await runner.cleanup()


async def test_over_a_socket_answers_find_their_calls(socket_url: str) -> None:
    async with WebSocketClient(socket_url) as client:
        held = asyncio.create_task(client.call("hold", 1))
        await asyncio.sleep(0)
        assert await client.call("echo", 2) == [2]
        assert await held == [1]
        with pytest.raises(RpcRefusal):
            await client.call("refuse")


async def test_notifications_come_in_order_until_the_connection_ends(socket_url: str) -> None:
    async with WebSocketClient(socket_url) as client:
        for number in range(3):
            await client.call("note", number)
        with pytest.raises(RpcUnreachable, match="broke"):
            await client.call("end")
        assert [note async for note in client.notifications()] == [0, 1, 2]
        assert not client.is_open
        with pytest.raises(RpcUnreachable, match="closed"):
            await client.call("echo")


async def test_a_closed_connection_can_be_opened_again(socket_url: str) -> None:
    client = WebSocketClient(socket_url)
    for number in range(2):
        await client.open()
        assert await client.call("echo", number) == [number]
        await client.close()


async def test_a_call_without_answer_ends_in_time(socket_url: str) -> None:
    async with WebSocketClient(socket_url, timeout=0.05) as client:
        with pytest.raises(RpcUnreachable, match="TimeoutError"):
            await client.call("hold")


async def test_a_connection_that_is_cancelled_while_it_opens_leaves_no_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The server accepts the connection and never answers the handshake."""
    sessions: list[aiohttp.ClientSession] = []

    def opened() -> aiohttp.ClientSession:
        sessions.append(open_session())
        return sessions[-1]

    monkeypatch.setattr("fastevm.rpc_client.asynchronous.open_session", opened)
    accepted = asyncio.Event()
    server = await asyncio.start_server(lambda *_: accepted.set(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        opening = asyncio.create_task(WebSocketClient(f"ws://127.0.0.1:{port}").open())
        await accepted.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
    assert [session.closed for session in sessions] == [True]


async def test_a_close_that_is_cancelled_leaves_no_session() -> None:
    """The server never answers the closing handshake."""
    leaving = asyncio.Event()

    async def deaf(request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await leaving.wait()
        return answer

    app = web.Application()
    app.router.add_get("/", deaf)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    client = WebSocketClient(f"ws://127.0.0.1:{runner.addresses[0][1]}/")
    await client.open()
    session = client._session
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0.05)
    assert session is not None and not session.closed
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert session.closed
    leaving.set()
    await runner.cleanup()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:pass/word@host:1/", "http://***"),
        ("http://user:12/34@host:1/", "http://***"),
        ("http://host:pass/", "http://***"),
        ("http://[pass/", "http://***"),
        ("pass", "***"),
    ],
)
def test_an_address_that_cannot_be_parsed_is_hidden(url: str, shown: str) -> None:
    assert shown_address(url) == shown
