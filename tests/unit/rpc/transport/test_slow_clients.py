"""Tests that silent, slow and unreading clients are disconnected, over HTTP and WebSockets."""

import asyncio
import gc
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import aiohttp
import pytest

from fastevm.chain.metrics import MetricsRegistry
from fastevm.node.following.feed_hub import FeedHub
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.envelope import Call, parse_body, parse_params
from fastevm.rpc.dispatch.registry import METHODS, Method, Param, RunOn
from fastevm.rpc.limits import Limits
from fastevm.rpc.traffic import TrafficBudget
from fastevm.rpc.transport import connection as connections
from fastevm.rpc.transport.access import Access
from fastevm.rpc.transport.client_session import Session
from fastevm.rpc.transport.outbox import ENTRY_MEMORY, Entry, Outbox, OutboxOverflow
from fastevm.rpc.transport.server import Listener, Server
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
LARGE = b'{"jsonrpc":"2.0","id":1,"method":"test_large"}'
PAGE = b"Origin: http://localhost\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
PONG = b"\x8a\x80mask"
MEGABYTE = 1 << 20

Make = Callable[..., Awaitable[Server]]


@pytest.fixture
async def make(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """Provides a function that starts a server with given limits. It checks timeouts often."""
    monkeypatch.setattr(connections, "SWEEP", 0.05)
    large = Method("test_large", lambda _: "x" * (8 * MEGABYTE), (), RunOn.LOOP)
    monkeypatch.setitem(METHODS, "test_large", large)
    servers = []

    async def make(proxies: Sequence[str] = (), **limits: Any) -> Server:
        access = Access(proxies=frozenset(proxies))
        listener = Listener(DIALECTS["geth"], port=0, access=access)
        node, simulator = FakeNode(chain_of(3)), FakeSimulator()
        node.feed = FeedHub(MetricsRegistry())  # type: ignore[attr-defined]
        server = Server(node, simulator, [listener], limits=Limits(**limits), threads=1)
        await server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        await server.stop()


class SilentTransport(asyncio.Transport):
    """Counts the answers that are written to it."""

    answers = 0

    def write(self, data: Any) -> None:
        self.answers += 1

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = server.urls[0].removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port), limit=1024)


async def ends(reader: asyncio.StreamReader) -> None:
    """Waits until the server has closed a connection."""
    async with asyncio.timeout(MAX_WAIT):
        try:
            while await reader.read(65_536):
                pass
        except ConnectionError:
            pass


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"POST / HT",
        HEAD + b"Content-Length: 100\r\n\r\n{",
        HEAD + PAGE + b"Content-Length: 100\r\n\r\n{",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-More: ",
        UPGRADE + b"\x01\x81maskx",
        UPGRADE + b"\x81\xfe\xff",
    ],
    ids=["silent", "head", "body", "body-of-a-page", "head-for-aiohttp", "message", "frame"],
)
async def test_what_does_not_arrive_ends_although_bytes_come(make: Make, start: bytes) -> None:
    server = await make(arrival_time=0.5)
    reader, writer = await connect(server)
    writer.write(start)
    ended = asyncio.create_task(ends(reader))
    while not ended.done():
        await asyncio.sleep(0.05)
        if start:  # sends one more byte, or a pong between frames
            is_between = start.endswith(b"maskx")
            writer.write(PONG if is_between else b"x" if b"\xff" not in start else b"")
    await ended
    assert not server._open[0].http.connections


async def test_a_connection_between_two_requests_is_not_ended(make: Make) -> None:
    server = await make(arrival_time=0.3)
    reader, writer = await connect(server)
    for extra in (b"", PAGE):
        for _ in range(2):
            writer.write(HEAD + extra + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
            assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            await reader.readuntil(b"}")
            await asyncio.sleep(0.6)


@pytest.mark.parametrize("extra", [b"", PAGE], ids=["fast-path", "aiohttp"])
async def test_who_does_not_read_ends(make: Make, extra: bytes) -> None:
    server = await make(write_time=0.3)
    _, writer = await connect(server)
    writer.write(HEAD + extra + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
    http = server._open[0].http
    async with asyncio.timeout(MAX_WAIT):
        while not http.unread:
            await asyncio.sleep(0.01)
        while http.connections:
            await asyncio.sleep(0.01)
    assert server.metrics.get("connections_too_slow_total") == 1
    writer.transport.abort()


async def test_answers_that_nobody_reads_are_bounded(make: Make) -> None:
    server = await make(traffic_size=20 * MEGABYTE)
    writers = []
    for _ in range(8):
        _, writer = await connect(server)
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
        writers.append(writer)
        await asyncio.sleep(0.05)
    http = server._open[0].http
    assert 0 < http.unread <= 20 * MEGABYTE
    assert server.metrics.get("connections_over_budget_total") >= 3
    for writer in writers:
        writer.transport.abort()


@pytest.mark.parametrize(
    "start",
    [
        HEAD + b"Content-Length: 2000000\r\n\r\n",
        HEAD + PAGE + b"Content-Length: 2000000\r\n\r\n",
        b"\x81\xff" + (2_000_000).to_bytes(8, "big") + b"mask",
    ],
    ids=["fast-path", "aiohttp", "message"],
)
async def test_unfinished_requests_are_bounded_together(make: Make, start: bytes) -> None:
    copies = 1 if start == HEAD + b"Content-Length: 2000000\r\n\r\n" else 2
    server = await make(traffic_size=copies * 5 * MEGABYTE)
    http = server._open[0].http
    clients = [await connect(server) for _ in range(8)]
    for reader, writer in clients:
        if not start.startswith(HEAD):
            writer.write(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
        writer.write(start + b" " * MEGABYTE)
    async with asyncio.timeout(MAX_WAIT):
        while server.metrics.get("connections_over_budget_total") < 3:
            await asyncio.sleep(0.01)
    assert copies * 3 * MEGABYTE < http.held <= copies * 5 * MEGABYTE
    assert len(http.connections) <= 5
    for _, writer in clients:
        writer.transport.abort()
    async with asyncio.timeout(MAX_WAIT):
        while http.connections:
            await asyncio.sleep(0.01)
    assert http.held == 0


SLOW_CALL = HEAD + PAGE + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
FRAME = b"\x81\xfe\x00\xffmask"  # the head of a frame of 255 bytes
PINGS = b"\x89\x80mask" * 40  # the frame's payload looks like pings


@pytest.mark.parametrize(
    "start",
    [
        SLOW_CALL + UPGRADE + FRAME,
        UPGRADE + PINGS * 300 + FRAME,
        SLOW_CALL + UPGRADE[:-1],
    ],
    ids=["behind-a-request", "much-too-early", "head-in-two"],
)
async def test_frames_cannot_hide_where_they_begin(make: Make, start: bytes) -> None:
    server = await make(arrival_time=0.5)
    reader, writer = await connect(server)
    writer.write(start)
    if start.endswith(b"\r"):
        await asyncio.sleep(0.2)
        writer.write(b"\n" + FRAME)
    ended = asyncio.create_task(ends(reader))
    async with asyncio.timeout(2.5):  # the frame would be complete after four seconds
        while not ended.done():
            await asyncio.sleep(0.1)
            writer.write(b"\x89\x80mask"[: 0 if writer.is_closing() else None])


async def test_an_unfinished_message_to_the_feed_ends_although_pongs_come(make: Make) -> None:
    server = await make(arrival_time=0.5)
    reader, writer = await connect(server)
    writer.write(UPGRADE.replace(b"GET /", b"GET /feed"))
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"\x01\x81maskx")
    ended = asyncio.create_task(ends(reader))
    async with asyncio.timeout(MAX_WAIT):
        while not ended.done():
            await asyncio.sleep(0.1)
            writer.write(b"" if writer.is_closing() else PONG)


async def test_the_feed_takes_little_and_packs_nothing_anew(make: Make) -> None:
    server = await make()
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(server.urls[0] + "/feed", compress=15)
        assert not socket.compress
        await socket.send_bytes(bytes(5_000))
        message = await socket.receive(timeout=MAX_WAIT)
        assert message.data == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_readers_of_the_feed_are_bounded_for_an_address_and_for_all(make: Make) -> None:
    for limits, words in (
        ({"feed_readers": 3}, "of the feed, limit 3"),
        ({"address_feed_readers": 3}, "at one address, limit 3"),
    ):
        server = await make(**limits)
        async with aiohttp.ClientSession() as session:
            url = server.urls[0] + "/feed"
            sockets = [await session.ws_connect(url) for _ in range(3)]
            async with session.get(url) as response:
                assert response.status == 429 and words in await response.text()
            await sockets[0].close()
            again = await session.ws_connect(url)
            assert not again.closed


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)], ids=["unknown", "trusted"])
async def test_limits_of_an_address_hold_for_each_client_of_a_trusted_proxy(
    make: Make, proxies: Sequence[str]
) -> None:
    server = await make(proxies, address_feed_readers=1, client_filters=1, address_connections=6)
    url, first, second = server.urls[0], *({"X-Forwarded-For": f"192.0.2.{n}"} for n in (1, 2))
    wanted = {"jsonrpc": "2.0", "id": 1, "method": "eth_newFilter", "params": [{}]}
    refused = not proxies
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(url + "/feed", headers=first)
        async with session.get(url + "/feed", headers=first) as response:
            assert response.status == 429
        async with session.get(url + "/feed", headers=second) as response:
            assert (response.status == 429) is refused
        assert not socket.closed
        for other in ({}, {"Origin": "http://localhost"}):  # on the fast path and in aiohttp
            for headers, beyond in ((first, other != {}), (first, True), (second, refused)):
                async with session.post(url, json=wanted, headers=headers | other) as response:
                    assert ("error" in await response.json()) is beyond
            second = {"X-Forwarded-For": "192.0.2.3"}
    kept = [await connect(server) for _ in range(8)]
    assert (server.metrics.get("connections_refused_total") > 0) is refused
    for _, writer in kept:
        writer.close()


async def test_a_socket_that_comes_before_aiohttp_is_loaded_lives(make: Make) -> None:
    server = await make(arrival_time=0.3)
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(server.urls[0])
        await asyncio.sleep(1)
        await socket.send_bytes(BODY)
        assert "result" in await socket.receive_json()
        assert server._open[0].http.held == 0
        await socket.close()


async def test_what_is_answered_is_not_held(make: Make) -> None:
    server = await make()
    http = server._open[0].http
    body = BODY + b" " * 500_000
    for extra in (b"", PAGE):
        reader, writer = await connect(server)
        writer.write(HEAD + extra + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        await reader.readuntil(b"}")
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(server.urls[0])
        await socket.send_bytes(body)
        assert "result" in await socket.receive_json()
        assert http.held == 0
        await socket.close()


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Provides the event for which calls to ``test_waits`` wait."""
    release = threading.Event()
    params = (Param(lambda value: value, optional=True),)
    waits = Method("test_waits", lambda *_: release.wait(MAX_WAIT), params, RunOn.WORKER)
    monkeypatch.setitem(METHODS, "test_waits", waits)
    yield release
    release.set()


def waiting_call(params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":1,"method":"test_waits","params":[%b]}' % params


DENSE = waiting_call(b"[" + b"[[]]," * 10_000 + b"0]")


async def held(http: connections.HttpListener, least: int) -> int:
    """Waits until a listener holds at least ``least`` bytes. Returns the number of bytes."""
    async with asyncio.timeout(MAX_WAIT):
        while http.held < least:
            await asyncio.sleep(0.01)
    return http.held


async def test_messages_in_progress_are_bounded_together(
    make: Make, release: threading.Event
) -> None:
    server = await make(traffic_size=15 * MEGABYTE)
    http = server._open[0].http
    message = waiting_call(b"1").ljust(MEGABYTE - 100)
    async with aiohttp.ClientSession() as session, asyncio.timeout(MAX_WAIT):
        sockets = [await session.ws_connect(server.urls[0]) for _ in range(8)]
        for socket in sockets:
            await socket.send_bytes(message)
        while server.metrics.get("connections_over_budget_total") < 3:
            await asyncio.sleep(0.01)
        assert 9 * MEGABYTE < http.held <= 15 * MEGABYTE
        release.set()
        while http.held:
            await asyncio.sleep(0.01)
        assert 3 <= len(server._open[0].http.connections) <= 5


@pytest.mark.parametrize("way", ["fast-path", "aiohttp", "message"])
async def test_a_request_in_progress_counts_with_the_memory_that_it_takes(
    make: Make, release: threading.Event, way: str
) -> None:
    server = await make()
    http = server._open[0].http
    reader, writer = await connect(server)
    if way == "message":
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x81\xff" + len(DENSE).to_bytes(8, "big") + bytes(4) + DENSE)
    else:
        extra = PAGE if way == "aiohttp" else b""
        writer.write(HEAD + extra + b"Content-Length: %d\r\n\r\n" % len(DENSE) + DENSE)
    memory = connections.memory_of(DENSE)
    assert memory > 30 * len(DENSE)
    assert await held(http, memory) == memory
    release.set()
    assert b"true" in await reader.readuntil(b"}")
    async with asyncio.timeout(MAX_WAIT):
        while http.held:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "unit", [b"1000", b"{}", b"[[]]", b"1.5", b'"ab"', b'{"":0}', b'{"a":{}}', b'"\xe2\x98\x83"']
)
def test_a_request_takes_no_more_memory_than_is_counted(unit: bytes) -> None:
    for size in (50_000, 200_000):
        body = waiting_call(b",".join([unit] * (size // (len(unit) + 1))))
        tracemalloc.start()
        call = parse_body(body, 1_000)
        assert isinstance(call, Call)
        params = parse_params(call.params)
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert params and taken + 2 * len(body) < connections.memory_of(body)


async def test_what_comes_ahead_of_an_answer_is_held(make: Make, release: threading.Event) -> None:
    server = await make()
    http = server._open[0].http
    _, writer = await connect(server)
    call = waiting_call(b"1")
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(call) + call + b"x" * 500_000)
    assert await held(http, 500_000) == 500_000 + connections.memory_of(call)
    writer.transport.abort()


async def test_messages_that_wait_for_their_turn_are_held(
    make: Make, release: threading.Event
) -> None:
    server = await make(socket_calls=1)
    http = server._open[0].http
    reader, writer = await connect(server)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    call = waiting_call(b"1").ljust(60_000)
    message = b"\x81\xff" + len(call).to_bytes(8, "big") + bytes(4) + call
    writer.write(message * 3 + b"\x89\x80mask" * 100)
    expected = connections.memory_of(call) + 2 * len(call)
    async with asyncio.timeout(MAX_WAIT):
        while http.held != expected:  # the pings are counted until they are answered
            await asyncio.sleep(0.01)
    release.set()
    async with asyncio.timeout(MAX_WAIT):
        while http.held:
            await asyncio.sleep(0.01)


async def test_what_was_answered_takes_no_memory(make: Make) -> None:
    server = await make()
    reader, writer = await connect(server)
    body = BODY.ljust(MEGABYTE)
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    await reader.readuntil(b"}")
    (connection,) = server._open[0].http.connections
    assert not connection.data


async def test_a_socket_whose_client_left_is_gone_before_the_collector_comes(make: Make) -> None:
    server = await make()
    gc.collect()
    gc.disable()
    try:
        async with aiohttp.ClientSession() as session:
            socket = await session.ws_connect(server.urls[0])
            await socket.send_bytes(BODY)
            assert await socket.receive_json()
            assert sum(type(item) is Session for item in gc.get_objects()) == 1
            socket._response.connection.transport.abort()
            async with asyncio.timeout(MAX_WAIT):
                while any(type(item) is Session for item in gc.get_objects()):
                    await asyncio.sleep(0.02)
    finally:
        gc.enable()


async def test_connections_are_bounded_for_an_address_and_for_all(make: Make) -> None:
    for limits in ({"connections": 3}, {"address_connections": 3}):
        server = await make(**limits)
        kept = [await connect(server) for _ in range(3)]
        reader, _ = await connect(server)
        await ends(reader)
        assert server.metrics.get("connections_refused_total") == 1
        kept[0][1].close()
        await ends(kept[0][0])
        reader, writer = await connect(server)
        writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        assert b" 200 " in await reader.readuntil(b"\r\n")


async def test_a_socket_that_asks_for_more_than_it_reads_is_cut_off(make: Make) -> None:
    server = await make(socket_output_size=20 * MEGABYTE, outbound_size=MEGABYTE)
    async with aiohttp.ClientSession() as session:
        socket = await session.ws_connect(server.urls[0], max_msg_size=0)
        for _ in range(32):
            await socket.send_bytes(LARGE)
        async with asyncio.timeout(MAX_WAIT):
            while not server.metrics.get("sockets_cut_off_total"):
                await asyncio.sleep(0.02)
        await socket.close()


async def test_one_answer_may_be_larger_than_the_queue() -> None:
    budget = TrafficBudget(10_000)
    holding = budget.holding("client")
    outbox = Outbox(
        messages=4, size=8 + ENTRY_MEMORY, hard_size=10 + 2 * ENTRY_MEMORY, holding=holding
    )
    await outbox.put(b"x" * 50)
    with pytest.raises(OutboxOverflow):
        await outbox.put(b"x" * (ENTRY_MEMORY + 1))
    assert budget.used == 50 + ENTRY_MEMORY
    assert await outbox.take(1) == [(b"x" * 50,)]
    assert budget.used == 0
    await outbox.put(b"x" * 8)
    waiting = asyncio.create_task(outbox.put(b"12"))
    await asyncio.sleep(0)
    assert budget.used == 10 + 2 * ENTRY_MEMORY and not outbox.offer(Entry((b"3",)))
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert budget.used == 8 + ENTRY_MEMORY
    outbox.clear()
    assert budget.used == 0


async def test_pipelined_requests_stay_on_the_fast_path_and_take_time_in_proportion(
    make: Make,
) -> None:
    server = await make()
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    http = server._open[0].http

    async def seconds(count: int) -> float:
        connection = http.connection()
        transport = SilentTransport()
        connection.connection_made(transport)
        data = request * count
        started = time.process_time()
        for at in range(0, len(data), 65_536):
            connection.data_received(data[at : at + 65_536])
            await asyncio.sleep(0)
        while transport.answers < count:
            await asyncio.sleep(0)
        taken = time.process_time() - started
        assert connection.delegate is None
        connection.connection_lost(None)
        return taken

    await seconds(1_000)
    few, many = await seconds(2_000), await seconds(20_000)
    assert many < 25 * few


async def test_a_large_answer_is_handed_over_in_pieces(make: Make) -> None:
    server = await make()
    http = server._open[0].http
    reader, writer = await connect(server)
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE
    small = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    writer.write(request + small + request)
    async with asyncio.timeout(MAX_WAIT):
        while not http.unread:
            await asyncio.sleep(0.01)
        (connection,) = http.connections
        assert connection.transport.get_write_buffer_size() < 2 * MEGABYTE
        assert connection.unsent() > 3 * MEGABYTE
        for size in (8 * MEGABYTE, 0, 8 * MEGABYTE):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            assert (b"x" * size) in body and body.endswith(b"}")
    assert connection.unsent() == 0 and connection.rest is None


async def asked_for_much(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Any]:
    """Returns a client with a large unread answer, and the server's connection to the client."""
    http = server._open[0].http
    reader, writer = await connect(server)
    writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE)
    while not http.unread:
        await asyncio.sleep(0.01)
    (connection,) = http.connections
    return reader, writer, connection


async def test_a_client_that_leaves_a_large_answer_lets_go_of_it(make: Make) -> None:
    server = await make()
    async with asyncio.timeout(MAX_WAIT):
        _, writer, connection = await asked_for_much(server)
        writer.transport.abort()
        while server._open[0].http.connections:
            await asyncio.sleep(0.01)
    assert connection.rest is None and connection.rest_size == 0


async def test_a_server_that_stops_sends_a_large_answer_to_its_end(make: Make) -> None:
    server = await make()
    async with asyncio.timeout(MAX_WAIT):
        reader, _, connection = await asked_for_much(server)
        connection.leave()
        assert len(await reader.read(-1)) > 8 * MEGABYTE
