"""Attacks a node continuously with garbage, slow senders, and clients that do not read answers.

Each attack uses a separate connection and lasts until the node closes the connection or the attack
is complete. A connection that the node keeps open beyond its time limits is counted as a failure.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from fastevm.bench.node.launch import HOST, LoopThread
from fastevm.bench.node.load import batch_of, http
from fastevm.bench.programs.loops import LOOP_CODE, LOOPED
from fastevm.rpc_client.messages import request_body

MEGABYTE: Final = 1 << 20
BODY_LIMIT: Final = 5 * MEGABYTE
TRICKLE_SECONDS: Final = 2.0  # seconds between two bytes of a slow sender
# Seconds until an attack counts as not ended. The node closes earlier: it allows 30 s to read an
# answer, after 30 s of grace, and checks every 5 s.
END_SECONDS: Final = 120.0
STARTED_LIMIT: Final = 64  # attacks that run at the same time
FLOOD: Final = 50  # connections that one attack opens together
READERS_WAIT: Final = 8  # requests that a client sends without reading the answers
SMALL_BUFFER: Final = 4_096  # stream buffer in bytes of a client that reads no answers

HEAD: Final = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n".encode()
UPGRADE: Final = (
    f"GET / HTTP/1.1\r\nHost: {HOST}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
).encode()
PONG: Final = b"\x8a\x80mask"

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Attack = Callable[[Reader, Writer], Awaitable[None]]


def frame(payload: bytes, *, opcode: int = 1, is_last: bool = True) -> bytes:
    """Returns a WebSocket frame as a client sends it. The mask is zero."""
    head = bytes([opcode | (0x80 if is_last else 0)])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 1 << 16:
        head += b"\xfe" + struct.pack(">H", len(payload))
    else:
        head += b"\xff" + struct.pack(">Q", len(payload))
    return head + bytes(4) + payload


def garbage(rng: random.Random) -> bytes:
    """Returns a body within the size limit that is not a valid batch of requests."""
    size = rng.choice((1_000, 100_000, BODY_LIMIT - 10))
    kind = rng.randrange(6)
    if kind == 0:
        return b"[" + b"1," * (size // 2 - 1) + b"1]"
    if kind == 1:
        return b"[" * size
    if kind == 2:
        return b'{"a":' * (size // 5)
    if kind == 3:
        return b'[{"id":1,"method":"' + b"\\u0041" * (size // 6) + b'"}]'
    if kind == 4:
        return rng.randbytes(size)
    return b"[" + b"{}," * (size // 3 - 1) + b"{}]"


def large_reads(rng: random.Random) -> bytes:
    """Returns a request with an answer of many megabytes."""
    blocks = [request_body("eth_getBlockByNumber", [hex(rng.randrange(50)), True], 1)] * 900
    return batch_of(blocks)


def heavy(rng: random.Random) -> bytes:
    """Returns an expensive request: a trace or simulation of a loop, a search of all logs."""
    code = {LOOPED: {"code": LOOP_CODE}}
    call = {"to": LOOPED, "gas": "0x493e0"}
    simulated = {"blockStateCalls": [{"stateOverrides": code, "calls": [call] * 8}]}
    calls: list[tuple[str, list[Any]]] = [
        ("debug_traceCall", [call, "latest", {"stateOverrides": code, "timeout": "1s"}]),
        ("eth_simulateV1", [simulated, "latest"]),
        ("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "latest"}]),
        ("txpool_content", []),
        ("eth_estimateGas", [call, "latest", code]),
    ]
    method, params = rng.choice(calls)
    return request_body(method, params)


class HostileClients:
    """Attacks the nodes at ``ports`` in rotation at a steady rate, on a separate event loop.

    ``tried``: number of attacks by kind. ``not_ended``: number of attacks after which the node kept
    the connection open too long.
    """

    def __init__(
        self, thread: LoopThread, ports: Sequence[int], *, rate: float, seed: int = 0
    ) -> None:
        self.thread, self.ports, self.rate = thread, ports, rate
        self.tried: Counter[str] = Counter()
        self.not_ended: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._running: set[asyncio.Task[None]] = set()
        self._attacking: asyncio.Task[None] | None = None
        self.attacks: dict[str, Attack] = {
            "garbage": self._send_garbage,
            "garbage in a frame": self._send_garbage_frame,
            "announced too large": self._announce_too_much,
            "trickled body": self._trickle_body,
            "trickled body of a page": self._trickle_page,
            "half a head": self._send_half_a_head,
            "odd head": self._send_odd_head,
            "giant message": self._send_giant_message,
            "unfinished message": self._trickle_message,
            "answers not read": self._read_nothing,
            "notes not read": self._hear_nothing,
            "heavy calls": self._call_and_leave,
            "filters not polled": self._install_filters,
            "flood": self._flood,
        }

    def start(self) -> None:
        """Starts the attacks."""
        self.thread.run(self._start())

    def stop(self) -> None:
        """Starts no more attacks, and ends the running attacks."""
        self.thread.run(self._stop())

    async def _start(self) -> None:
        self._attacking = asyncio.create_task(self._attack())

    async def _stop(self) -> None:
        tasks = [*self._running, *([self._attacking] if self._attacking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _attack(self) -> None:
        ports = itertools.cycle(self.ports)
        for kind in itertools.cycle(self.attacks):
            if len(self._running) < STARTED_LIMIT:
                task = asyncio.create_task(self._one(kind, next(ports)))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
            await asyncio.sleep(1 / self.rate)

    async def _one(self, kind: str, port: int) -> None:
        """Runs one attack until the node ends the connection, usually with an error or a reset."""
        try:
            reader, writer = await asyncio.open_connection(HOST, port, limit=SMALL_BUFFER)
        except OSError:
            return  # The node is restarting.
        self.tried[kind] += 1
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.attacks[kind](reader, writer)
        except TimeoutError:
            self.not_ended[kind] += 1
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.transport.abort()

    # --- the attacks ------------------------------------------------------------------------------

    async def _send_garbage(self, reader: Reader, writer: Writer) -> None:
        writer.write(http(garbage(self._random)))
        await reader.readuntil(b"\r\n")

    async def _send_garbage_frame(self, reader: Reader, writer: Writer) -> None:
        await _upgrade(reader, writer)
        writer.write(frame(garbage(self._random)))
        await reader.read(SMALL_BUFFER)

    async def _announce_too_much(self, reader: Reader, writer: Writer) -> None:
        writer.write(HEAD + b"Content-Length: 100000000\r\n\r\n[")
        await _end(reader)

    async def _trickle_body(self, reader: Reader, writer: Writer) -> None:
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n[")
        await _trickle(reader, writer, b" ")

    async def _trickle_page(self, reader: Reader, writer: Writer) -> None:
        writer.write(HEAD + b"Origin: http://localhost\r\nContent-Length: 1000\r\n\r\n[")
        await _trickle(reader, writer, b" ")

    async def _send_half_a_head(self, reader: Reader, writer: Writer) -> None:
        writer.write(HEAD[: self._random.randrange(len(HEAD))])
        await _end(reader)

    async def _send_odd_head(self, reader: Reader, writer: Writer) -> None:
        odd = self._random.choice((b"X: a\nb\r\n", b"X: a\rb\r\n", b"X: a\0b\r\n", b"X : a\r\n"))
        writer.write(HEAD + odd + b"Content-Length: 2\r\n\r\n[]")
        await reader.readuntil(b"\r\n")

    async def _send_giant_message(self, reader: Reader, writer: Writer) -> None:
        await _upgrade(reader, writer)
        writer.write(b"\x81\xff" + struct.pack(">Q", 64 * MEGABYTE) + bytes(4))
        for _ in range(64):
            writer.write(b"[" * MEGABYTE)
            await writer.drain()
        await _end(reader)

    async def _trickle_message(self, reader: Reader, writer: Writer) -> None:
        await _upgrade(reader, writer)
        writer.write(frame(b"[", is_last=False))
        await _trickle(reader, writer, PONG)

    async def _read_nothing(self, reader: Reader, writer: Writer) -> None:
        for _ in range(READERS_WAIT):
            writer.write(http(large_reads(self._random)))
            await writer.drain()
        await _reset(writer, b"\r\n")

    async def _hear_nothing(self, reader: Reader, writer: Writer) -> None:
        await _upgrade(reader, writer)
        for params in (["newHeads"], ["logs", {}], ["newPendingTransactions", True]):
            writer.write(frame(request_body("eth_subscribe", params)))
        for _ in range(READERS_WAIT):
            writer.write(frame(large_reads(self._random)))
            await writer.drain()
        await _reset(writer, PONG)

    async def _call_and_leave(self, reader: Reader, writer: Writer) -> None:
        writer.write(http(heavy(self._random)))
        if self._random.random() < 0.5:
            await reader.readuntil(b"\r\n\r\n")

    async def _install_filters(self, reader: Reader, writer: Writer) -> None:
        body = batch_of([request_body("eth_newFilter", [{}])] * 50)
        writer.write(http(body))
        await reader.readuntil(b"\r\n\r\n")

    async def _flood(self, reader: Reader, writer: Writer) -> None:
        port = writer.get_extra_info("peername")[1]
        opened = await asyncio.gather(
            *(asyncio.open_connection(HOST, port) for _ in range(FLOOD)), return_exceptions=True
        )
        for item in opened:
            if not isinstance(item, BaseException):
                item[1].transport.abort()


async def _upgrade(reader: Reader, writer: Writer) -> None:
    writer.write(UPGRADE)
    await reader.readuntil(b"\r\n\r\n")


async def _end(reader: Reader) -> None:
    """Reads until the node closes the connection."""
    while await reader.read(SMALL_BUFFER):
        pass


async def _trickle(reader: Reader, writer: Writer, piece: bytes) -> None:
    """Sends a piece every `TRICKLE_SECONDS` until the node closes the connection."""
    ended = asyncio.create_task(_end(reader))
    try:
        while not ended.done():
            writer.write(piece)
            await asyncio.wait((ended,), timeout=TRICKLE_SECONDS)
    finally:
        ended.cancel()
        with suppress(OSError, asyncio.CancelledError):
            await ended


async def _reset(writer: Writer, piece: bytes) -> None:
    """Reads nothing, and sends a piece at intervals until the node resets the connection."""
    while not writer.transport.is_closing():
        writer.write(piece)
        await asyncio.sleep(TRICKLE_SECONDS)
