"""Tests a follower of an OP-stack chain over sockets, with every feed format."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fastevm.bench.node.launch import server_of
from fastevm.node.following import service
from fastevm.rpc_types.feed import FeedSlice, compress, encode

from .op_feeding import OpSource, op_genesis, op_node, subblock
from .test_service import eventually


class Feed:
    """A WebSocket that sends the test's messages to its readers."""

    def __init__(self) -> None:
        self.sockets: list[web.WebSocketResponse] = []
        app = web.Application()
        app.router.add_get("/ws", self._serve)
        self.runner = web.AppRunner(app)

    async def start(self) -> str:
        """Starts listening. Returns the address."""
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", 0).start()
        return f"ws://127.0.0.1:{self.runner.addresses[0][1]}/ws"

    async def send(self, frame: str | bytes) -> None:
        """Sends a frame to all readers."""
        for socket in self.sockets:
            await (socket.send_str(frame) if isinstance(frame, str) else socket.send_bytes(frame))

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        async for _ in socket:
            pass
        self.sockets.remove(socket)
        return socket


class Harness:
    """A sequencer that serves JSON-RPC and a feed, and a follower that reads both."""

    def __init__(self) -> None:
        genesis = op_genesis()
        genesis["config"] |= {"holoceneTime": 0, "isthmusTime": 0, "jovianTime": 0}
        genesis["extraData"] = "0x01" + "00000032" + "00000006" + "00" * 8
        self.source, self.feed = OpSource(genesis), Feed()
        self.upstream = server_of(self.source.node, threads=1)
        self.follower = op_node(genesis)
        self.server = server_of(self.follower, threads=1)

    async def start(self) -> None:
        await self.upstream.start()
        self.follower.follow(self.upstream.urls[0], await self.feed.start(), poll_ms=30)
        self.follower.follower.sync.first_pause = 0.05
        await self.server.start()
        await eventually(lambda: self.feed.sockets)

    async def stop(self) -> None:
        await self.server.stop()
        await self.feed.runner.cleanup()
        await self.upstream.stop()

    def position(self) -> tuple[int, int] | None:
        pending = self.follower.pending()
        return None if pending is None else (pending.header.number, pending.slice_index)

    def metric(self, name: str) -> float:
        return self.follower.metrics().get(name, 0)

    async def ready(self) -> Any:
        async with (
            aiohttp.ClientSession() as session,
            session.get(self.server.urls[0] + "/readyz") as response,
        ):
            return await response.json()


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    made = Harness()
    await made.start()
    yield made
    await made.stop()


def same(message: FeedSlice) -> FeedSlice:
    return message


@pytest.mark.parametrize("tells", [same, subblock])
@pytest.mark.parametrize("frame", [str, str.encode, compress])
async def test_a_feed_is_followed_in_every_form(
    harness: Harness, tells: Callable[[FeedSlice], FeedSlice], frame: Callable[[str], str | bytes]
) -> None:
    form = "subblocks" if tells is subblock else "flashblocks"
    frames = "brotli" if frame is compress else "json"
    for number in (1, 2):
        await harness.feed.send(frame(encode(tells(harness.source.begin()))))
        payment = harness.source.slice(harness.source.payment())
        await harness.feed.send(frame(encode(tells(payment))))
        await harness.feed.send(frame(encode(tells(harness.source.slice()))))
        await eventually(lambda number=number: harness.position() == (number, 2))
        assert harness.metric(f'feed_form{{form="{form}",frames="{frames}"}}') == 1
        unverified = set((await harness.ready())["unverified"])
        assert ("state_root" in unverified) == (tells is subblock)
        assert harness.metric('pending_unverified{member="deposits"}') == 1
        block = harness.source.seal()
        await eventually(lambda block=block: harness.follower.chain.head == block)
    assert harness.metric("reconcile_mismatch_total") == 0
    assert harness.metric("feed_divergence_total") == 0


async def test_canonical_blocks_come_from_json_too(harness: Harness) -> None:
    harness.follower.follower.sync.block_import.raw_blocks = False
    for _ in range(3):
        harness.source.begin()
        harness.source.slice(harness.source.payment())
        harness.source.seal()
    await eventually(lambda: harness.follower.chain.head == harness.source.chain.head)


async def test_a_header_makes_the_follower_fetch_the_block(harness: Harness) -> None:
    harness.follower.follower.sync.poll_seconds = 60.0
    await asyncio.sleep(0.1)  # an earlier poll may still be in progress
    harness.source.begin()
    block = harness.source.seal()
    header = f'{{"parentHash":"0x00","number":"0x1","hash":"0x{block.hash.hex()}"}}'
    await harness.feed.send(header)
    await eventually(lambda: harness.follower.chain.head == block)
    assert harness.metric('feed_form{form="headers",frames="json"}') == 1
    assert harness.metric("feed_heads_total") == 1
    assert "feed_age_seconds" not in harness.follower.metrics()
    assert (await harness.ready())["ready"]


async def test_a_feed_that_falls_silent_is_lost(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await harness.feed.send(encode(harness.source.begin()))
    await eventually(lambda: harness.position() == (1, 0))
    monkeypatch.setattr(service, "SILENCE_SECONDS", 0.3)
    await harness.feed.send(encode(harness.source.slice()))
    await eventually(lambda: harness.metric("feed_reconnects_total") >= 1)
    await eventually(lambda: harness.position() is None)
    assert harness.metric("feed_age_seconds") >= 0.3
    assert harness.metric("pending_withdrawn_total") == 1
    assert harness.metric('feed_form{form="flashblocks",frames="json"}') == 0
