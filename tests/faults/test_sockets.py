"""Tests that many connections that cost the node memory but send little do not exhaust it."""

import asyncio
import sys
import time
import tracemalloc
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.server import Listener
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.transport.test_slow_clients import (
    BODY,
    HEAD,
    LARGE,
    MEGABYTE,
    UPGRADE,
    Make,
    connect,
    ends,
    make,
)

__all__ = ["make"]

ROOT = Path(__file__).parents[2]
FLOOD = 3_072  # frames
TEXT, CONTINUED, PING, FINAL = 1, 0, 9, 0x80


def frame(opcode: int, payload: bytes = b"") -> bytes:
    return bytes([opcode, 0x80 | len(payload)]) + b"\0\0\0\0" + payload


FLOODS = {
    "empty fragments": frame(CONTINUED),
    "fragments of one byte": frame(CONTINUED, b"x"),
    "pings": frame(PING | FINAL),
    "empty messages": frame(TEXT | FINAL),
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_of_tiny_frames_ends_its_connection(make: Make, name: str) -> None:
    server = await make()
    reader, writer = await connect(server)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    start = b"" if FLOODS[name][0] & FINAL else frame(TEXT, b"x")
    writer.write(start + FLOODS[name] * (FLOOD))
    async with asyncio.timeout(MAX_WAIT):
        await ends(reader)
    assert server.metrics.get("connections_over_budget_total") == 1


async def test_floods_of_tiny_frames_do_not_stall_others(make: Make) -> None:
    server = await make()
    good, bad = await connect(server), [await connect(server) for _ in range(8)]
    for reader, writer in bad:
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
    for _, writer in bad:
        writer.write(frame(TEXT, b"x") + frame(CONTINUED) * 200_000)
    worst = 0.0
    for _ in range(20):
        began = time.monotonic()
        good[1].write(HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        await good[0].readuntil(b"}")
        worst = max(worst, time.monotonic() - began)
    assert worst < 0.5, worst
    for _, writer in (good, *bad):
        writer.transport.abort()


@pytest.mark.parametrize("path", [b"/", b"/feed", b"/nothing", b"/healthz"])
async def test_frames_behind_a_refused_handshake_are_not_parsed_as_requests(
    make: Make, caplog: pytest.LogCaptureFixture, path: bytes
) -> None:
    """The frames arrive in one packet with the handshake, too many for a WebSocket."""
    server = await make()
    reader, writer = await connect(server)
    request = UPGRADE.replace(b"GET /", b"GET " + path, 1)
    writer.write(request + frame(TEXT, b"x") + frame(CONTINUED) * 20_000)
    async with asyncio.timeout(MAX_WAIT):
        answer = await reader.read()
    head, _, text = answer.partition(b"\r\n\r\n")
    statuses = {b"/nothing": b"404", b"/healthz": b"200"}
    assert head.startswith(b"HTTP/1.1 " + statuses.get(path, b"400"))
    is_short, logged = len(text) < 200, [record.name for record in caplog.records]
    assert is_short
    assert not logged


async def test_a_second_of_few_tiny_frames_is_fine(make: Make) -> None:
    server = await make()
    reader, writer = await connect(server)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    fragments = [frame(TEXT, BODY[:1]), *(frame(CONTINUED, BODY[n : n + 1]) for n in range(1, 46))]
    writer.write(b"".join(fragments) + frame(CONTINUED | FINAL, BODY[46:]))
    async with asyncio.timeout(MAX_WAIT):
        assert b"result" in await reader.readuntil(b"}")
    writer.transport.abort()


async def test_an_unfinished_message_counts_with_its_copies_before_it_comes(make: Make) -> None:
    server = await make(traffic_size=10 * MEGABYTE)
    http = server._open[0].http  # type: ignore[union-attr]
    clients = [await connect(server) for _ in range(6)]
    for reader, writer in clients:
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x81\xff" + (2 * MEGABYTE).to_bytes(8, "big") + b"\0\0\0\0")
    async with asyncio.timeout(MAX_WAIT):
        while len(http.connections) > 2:
            await asyncio.sleep(0.01)
    assert http.held == 8 * MEGABYTE
    for _, writer in clients:
        writer.transport.abort()


async def test_answers_that_one_client_does_not_read_leave_memory_to_others(make: Make) -> None:
    """All listeners share one memory budget.

    The client that uses most loses its connections first.
    """
    server = await make(traffic_size=20 * MEGABYTE)
    await server.listen(Listener(DIALECTS["geth"], port=0))
    request = HEAD + b"Content-Length: %d\r\n\r\n" % len(LARGE) + LARGE
    greedy = [await connect(server) for _ in range(8)]
    for _, writer in greedy:
        writer.write(request)
    async with asyncio.timeout(MAX_WAIT):
        while not server.metrics.get("connections_over_budget_total"):
            await asyncio.sleep(0.01)
    host, port = server.urls[1].removeprefix("http://").split(":")
    source = ("127.0.0.2", 0)
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024, local_addr=source)
    writer.write(request)
    first, second = (opened.http for opened in server._open)  # type: ignore[union-attr]
    async with asyncio.timeout(MAX_WAIT):
        while not second.unread:
            await asyncio.sleep(0.01)
    assert first.unread + second.unread == server.traffic.used <= 20 * MEGABYTE
    async with asyncio.timeout(MAX_WAIT):
        await reader.readuntil(b"\r\n\r\n")
        assert (await reader.readexactly(8 * MEGABYTE)).endswith(b"x")
    writer.transport.abort()
    for _, writer in greedy:
        writer.transport.abort()


async def test_an_unread_answer_of_a_socket_is_in_memory_once(make: Make) -> None:
    server = await make()
    reader, writer = await connect(server)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    tracemalloc.start()
    try:
        writer.write(frame(TEXT | FINAL, LARGE))
        http = server._open[0].http  # type: ignore[union-attr]
        async with asyncio.timeout(MAX_WAIT):
            while not http.unread:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert http.unread > 2 * MEGABYTE and taken < 16 * MEGABYTE
    writer.transport.abort()


IDLE = f"""
import asyncio, json, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))
sys.path.insert(0, {str(ROOT)!r})
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.server import Listener, Server, run
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

async def main():
    listener = Listener(DIALECTS["geth"], port=0)
    server = Server(FakeNode(chain_of(3)), FakeSimulator(), [listener], threads=1)
    await server.start()
    print(server.urls[0], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    open("/dev/null").close()
    print(server.metrics.get("connections_refused_total"), flush=True)
    await server.stop()

run(main())
"""


async def test_idle_connections_leave_descriptors_for_files() -> None:
    node = await asyncio.create_subprocess_exec(
        sys.executable, "-c", IDLE, stdin=PIPE, stdout=PIPE
    )  # fmt: skip
    assert node.stdin is not None and node.stdout is not None
    host, port = (await node.stdout.readline()).decode().strip().removeprefix("http://").split(":")
    writers = []
    for _ in range(290):
        _, writer = await asyncio.open_connection(host, int(port))
        writers.append(writer)
    await asyncio.sleep(0.5)
    output, _ = await node.communicate(b"")
    assert int(output) > 0 and node.returncode == 0
    for writer in writers:
        writer.transport.abort()


async def test_a_client_of_many_ipv6_addresses_counts_as_one(make: Make) -> None:
    server = await make(["127.0.0.1"], client_filters=1)
    reader, writer = await connect(server)
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{}]}'
    answers = []
    for number in range(2):
        client = b"X-Forwarded-For: 2001:db8::%d\r\n" % number
        writer.write(HEAD + client + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await reader.readuntil(b"\r\n\r\n")
        answers.append(await reader.readuntil(b"}"))
    assert [b"error" in answer for answer in answers] == [False, True]
    writer.transport.abort()
