"""Connections that cost much and say nothing do not stall or exhaust the node."""

import asyncio
import time

import pytest

from tests.unit.rpc.transport.test_slow_clients import (
    BODY,
    HEAD,
    MEGABYTE,
    UPGRADE,
    Make,
    connect,
    ends,
    make,
)

__all__ = ["make"]  # fixture

SECONDS = 20.0
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
    async with asyncio.timeout(SECONDS):
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


async def test_a_second_of_few_tiny_frames_is_fine(make: Make) -> None:
    server = await make()
    reader, writer = await connect(server)
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")
    fragments = [frame(TEXT, BODY[:1]), *(frame(CONTINUED, BODY[n : n + 1]) for n in range(1, 46))]
    writer.write(b"".join(fragments) + frame(CONTINUED | FINAL, BODY[46:]))
    async with asyncio.timeout(SECONDS):
        assert b"result" in await reader.readuntil(b"}")
    writer.transport.abort()


async def test_an_unfinished_message_counts_with_its_copies_before_it_comes(make: Make) -> None:
    server = await make(input_size=10 * MEGABYTE)
    http = server._open[0].http  # type: ignore[union-attr]
    clients = [await connect(server) for _ in range(6)]
    for reader, writer in clients:
        writer.write(UPGRADE)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"\x81\xff" + (2 * MEGABYTE).to_bytes(8, "big") + b"\0\0\0\0")
    async with asyncio.timeout(SECONDS):
        while len(http.connections) > 2:
            await asyncio.sleep(0.01)
    assert http.held == 8 * MEGABYTE
    for _, writer in clients:
        writer.transport.abort()
