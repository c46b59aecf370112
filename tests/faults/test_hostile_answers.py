"""Tests upstreams whose response headers never end, or whose body decompresses to gigabytes."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace

import pytest

from fastevm.core.primitives.decompression import TooLarge, decompressed
from fastevm.node import Mining, dev_node
from fastevm.rpc import methods as _  # noqa: F401
from fastevm.rpc.dispatch.registry import METHODS
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import LOADED_STATE_SIZE
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcUnreachable
from tests.max_wait import MAX_WAIT

MEGABYTE = 1 << 20
LIMIT = 2 * MEGABYTE  # largest allowed answer in bytes
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
BOMB = gzip.compress(b" " * (200 * MEGABYTE), mtime=0)
Writer = asyncio.StreamWriter


async def endless(writer: Writer, data: bytes, pause: float = 0.0) -> None:
    """Sends the same data repeatedly until the client disconnects."""
    while True:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(pause)


async def interim(writer: Writer) -> None:
    """Sends interim responses (1xx) without end."""
    await endless(writer, INTERIM * 100)


async def slow_interim(writer: Writer) -> None:
    """Sends an interim response (1xx) at long intervals, without end."""
    await endless(writer, INTERIM, 0.02)


async def slow(writer: Writer) -> None:
    """Sends the response headers one byte at a time, at long intervals."""
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    await endless(writer, b"x", 0.02)


async def headers(writer: Writer) -> None:
    """Sends response headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    await endless(writer, b"X: " + b"x" * 4_000 + b"\r\n")


async def bomb(writer: Writer) -> None:
    """Sends a compressed body that decompresses to 200 MB."""
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
    await endless(writer, head + BOMB, MAX_WAIT)


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[str]]]:
    """Provides a function that starts an upstream and returns its address without the scheme."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def start(attack: Callable[[Writer], Awaitable[None]]) -> str:
        async def answer(reader: asyncio.StreamReader, writer: Writer) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await reader.readuntil(b"\r\n\r\n")
                await attack(writer)
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                writer.transport.abort()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        servers.append(server)
        return f"127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def blocking(address: str, timeout: float) -> None:
    """Makes a call with the blocking JSON-RPC client."""
    client = JsonRpcClient(f"http://{address}", timeout=timeout, max_answer=LIMIT, compressed=True)
    with client:
        await asyncio.to_thread(client.call, "eth_chainId")


async def asynchronous(address: str, timeout: float) -> None:
    """Makes a call with the asynchronous JSON-RPC client."""
    async with AsyncJsonRpcClient(f"http://{address}", timeout=timeout, max_answer=LIMIT) as client:
        await client.call("eth_chainId")


async def websocket(address: str, timeout: float) -> None:
    """Opens a WebSocket connection."""
    async with WebSocketClient(f"ws://{address}", timeout=timeout):
        pass


CLIENTS = [blocking, asynchronous, websocket]


@pytest.mark.parametrize("call", CLIENTS)
@pytest.mark.parametrize("attack", [interim, headers])
async def test_heads_of_an_answer_are_bounded_in_number_and_size(
    serve: Callable[..., Awaitable[str]], call: Callable[..., Awaitable[None]], attack: object
) -> None:
    address = await serve(attack)
    async with asyncio.timeout(MAX_WAIT):
        with pytest.raises(RpcUnreachable) as refused:
            await call(address, MAX_WAIT)
    assert "timed out" not in str(refused.value) and "Timeout" not in str(refused.value)


@pytest.mark.parametrize("call", CLIENTS)
@pytest.mark.parametrize("attack", [slow, slow_interim])
async def test_a_head_must_arrive_in_the_time_of_a_request(
    serve: Callable[..., Awaitable[str]], call: Callable[..., Awaitable[None]], attack: object
) -> None:
    address = await serve(attack)
    async with asyncio.timeout(MAX_WAIT):
        with pytest.raises(RpcUnreachable):
            await call(address, 0.5)


@pytest.mark.parametrize("call", [blocking, asynchronous])
async def test_a_compressed_answer_is_bounded_when_it_is_unpacked(
    serve: Callable[..., Awaitable[str]], call: Callable[..., Awaitable[None]]
) -> None:
    address = await serve(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(RpcUnreachable, match=r"more than \d+ bytes"):
            await call(address, MAX_WAIT)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * LIMIT


def test_a_state_of_a_request_is_bounded_when_it_is_unpacked() -> None:
    node = dev_node(accounts=2, mining=Mining.MANUAL)
    packed = gzip.compress(b" " * (LOADED_STATE_SIZE + 1), mtime=0)
    load = METHODS["anvil_loadState"].handler
    with pytest.raises(RpcError, match=f"more than {LOADED_STATE_SIZE} bytes"):
        load(SimpleNamespace(node=node), packed)
    for text in (b"[],", b"{},", b"1,", b'"":'):
        packed = gzip.compress(b"[" + text * (LOADED_STATE_SIZE // len(text) - 9) + b"1]", mtime=0)
        with pytest.raises(RpcError, match=r"JSON values|not a state"):
            load(SimpleNamespace(node=node), packed)


def test_unpacked_bytes_are_one_whole_stream_of_bounded_size() -> None:
    data = b"x" * (3 * MEGABYTE)
    packed = gzip.compress(data, mtime=0)
    assert decompressed(packed, len(data)) == data
    with pytest.raises(TooLarge, match=f"more than {len(data) - 1} bytes"):
        decompressed(packed, len(data) - 1)
    for damaged, words in (
        (packed[:-4], "truncated"),
        (packed + b"x", "does not end where"),
        (b"\x1f\x8b\x00", "truncated|invalid"),
        (b"x" + packed, "invalid compressed data"),
        (b"", "truncated"),
    ):
        with pytest.raises(ValueError, match=words):
            decompressed(damaged, len(data))
