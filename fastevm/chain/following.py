"""Follows another node: its canonical blocks over JSON-RPC, its slices over the feed.

Both connections come and go on their own: what is missing is fetched, what cannot be followed makes
``pending`` mean ``latest``. The upstream node is the authority on what is canonical.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from threading import RLock
from typing import Any

import aiohttp

from fastevm.chain.block_json import block_from_json
from fastevm.chain.chain import Chain
from fastevm.chain.feed import MAX_MESSAGE_BYTES, FeedError, decode
from fastevm.chain.follower import Follower
from fastevm.chain.meters import Meters
from fastevm.chain.upstream import (
    METHOD_NOT_FOUND,
    Upstream,
    UpstreamError,
    UpstreamRefusal,
)
from fastevm.errors import FastevmError
from fastevm.execution.decoding import decode_block
from fastevm.types import Block

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds between attempts to connect
PING_SECONDS = 1.0  # an idle feed is pinged; a pong must come within half of it
SILENCE_SECONDS = 5.0  # a feed without messages for so long is connected again
FETCH_AHEAD = 16  # blocks asked for at once
MAX_BRANCH = 4_096  # blocks that a reorganisation of the upstream may replace


class Backoff:
    """Pauses that double, until something worked."""

    def __init__(self, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> None:
        self.first, self.longest = first, longest
        self._next = first

    def reset(self) -> None:
        """It worked."""
        self._next = self.first

    def pause(self) -> float:
        """Seconds to wait before the next attempt."""
        pause, self._next = self._next, min(self.longest, self._next * 2)
        return pause


class Following:
    """The two tasks of a node that follows; ``start`` and ``stop`` belong to its event loop."""

    def __init__(
        self,
        chain: Chain,
        follower: Follower,
        *,
        add_block: Callable[[Block], Any],
        lock: RLock,
        meters: Meters,
        upstream_url: str,
        feed_url: str | None = None,
        poll_seconds: float = 0.2,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self.chain, self.follower, self.meters = chain, follower, meters
        self.feed_url, self.poll_seconds = feed_url, poll_seconds
        self.first_pause = first_pause
        self.upstream = Upstream(upstream_url, on_head=self._head_announced)
        self._add_block, self._lock = add_block, lock
        self._announced = asyncio.Event()
        self.raw_blocks = True
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Begin to follow; nothing is waited for."""
        self._loop = asyncio.get_running_loop()
        self._tasks.append(asyncio.create_task(self._forever(self._follow_blocks, "upstream")))
        if self.feed_url is not None:
            self._tasks.append(asyncio.create_task(self._forever(self._follow_feed, "feed")))

    async def stop(self) -> None:
        """Disconnect."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.upstream.close()

    def forward(self, raw: bytes) -> None:
        """Send a transaction on, from another thread; UpstreamRefusal or UpstreamError."""
        if self._loop is None:
            raise UpstreamError("the upstream node is not connected")
        call = self.upstream.call("eth_sendRawTransaction", "0x" + raw.hex())
        asyncio.run_coroutine_threadsafe(call, self._loop).result()

    async def _forever(self, attempt: Callable[[Backoff], Awaitable[None]], name: str) -> None:
        backoff = Backoff(self.first_pause)
        while True:
            try:
                await attempt(backoff)
            except (FastevmError, aiohttp.ClientError, OSError, TimeoutError) as error:
                log.warning("%s: %s", name, error or type(error).__name__)
            except Exception:
                log.exception("%s failed", name)
            self.meters.set(f"{name}_connected", 0)
            self.meters.count(f"{name}_reconnects_total")
            await asyncio.sleep(backoff.pause())

    # --- the feed ---------------------------------------------------------------------------------

    async def _follow_feed(self, backoff: Backoff) -> None:
        assert self.feed_url is not None
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(
                    self.feed_url, heartbeat=PING_SECONDS, max_msg_size=MAX_MESSAGE_BYTES
                ) as socket,
            ):
                self.meters.set("feed_connected", 1)
                while True:
                    message = await socket.receive(timeout=SILENCE_SECONDS)
                    if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                        raise UpstreamError(f"{self.feed_url}: the feed ended")
                    backoff.reset()
                    await asyncio.to_thread(self._receive, message.data)
        finally:
            await asyncio.to_thread(self.follower.withdraw, "the feed is not connected")

    def _receive(self, frame: str | bytes) -> None:
        try:
            self.follower.receive(decode(frame))
        except FeedError as error:
            log.warning("feed: %s", error)
            self.meters.count("feed_decode_errors_total")

    # --- canonical blocks -------------------------------------------------------------------------

    def _head_announced(self) -> None:
        self._announced.set()

    async def _follow_blocks(self, backoff: Backoff) -> None:
        while True:
            self._announced.clear()
            head = await self.upstream.call("eth_getBlockByNumber", "latest", False)
            number, block_hash = int(head["number"], 16), bytes.fromhex(head["hash"][2:])
            self.meters.set("upstream_head_number", number)
            self.meters.set("upstream_connected", 1)
            if block_hash != self.chain.head.hash:
                await self._catch_up(number, block_hash)
            backoff.reset()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._announced.wait(), self.poll_seconds)

    async def _catch_up(self, number: int, block_hash: bytes) -> None:
        """Make the upstream's head ours: forwards as long as blocks fit, else from the fork on."""
        while self.chain.head.number < number:
            first = self.chain.head.number + 1
            last = min(number, first + FETCH_AHEAD - 1)
            blocks = await asyncio.gather(*map(self._fetch, range(first, last + 1)))
            if blocks[0].header.parent_hash != self.chain.head.hash:
                break
            for block in blocks:
                await asyncio.to_thread(self._add_block, block)
        if self.chain.head.hash != block_hash:
            await self._switch_branch(number)

    async def _switch_branch(self, number: int) -> None:
        branch = [await self._fetch(number)]
        while self.chain.block_by_hash(branch[-1].hash) is None:
            before = branch[-1].number - 1
            if before < self.chain.genesis.number or len(branch) > MAX_BRANCH:
                self.meters.count("upstream_foreign_total")
                raise UpstreamError(f"{self.upstream.url} is on another chain")
            branch.append(await self._fetch(before))
            if branch[-1].hash != branch[-2].header.parent_hash:
                return  # it moved on meanwhile: the next round sees the new head
        for block in reversed(branch):
            await asyncio.to_thread(self._add_block, block)
        await asyncio.to_thread(self._set_head, branch[0])

    def _set_head(self, block: Block) -> None:
        with self._lock:
            if self.chain.head.hash != block.hash:
                self.chain.set_head(block.hash)

    async def _fetch(self, number: int) -> Block:
        if self.raw_blocks:
            try:
                raw = await self.upstream.call("debug_getRawBlock", hex(number))
                return decode_block(bytes.fromhex(raw[2:]), number=number)
            except UpstreamRefusal as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                self.raw_blocks = False
        found = await self.upstream.call("eth_getBlockByNumber", hex(number), True)
        if found is None:
            raise UpstreamError(f"{self.upstream.url} has no block {number}")
        return block_from_json(found)


async def first_block(url: str, number: int = 0) -> dict[str, Any]:
    """The JSON of an upstream's block, asked for until it answers."""
    upstream, backoff = Upstream(url), Backoff()
    try:
        while True:
            try:
                found = await upstream.call("eth_getBlockByNumber", hex(number), False)
                return dict(found)
            except UpstreamError as error:
                log.warning("waiting for the upstream node: %s", error)
                await asyncio.sleep(backoff.pause())
    finally:
        await upstream.close()
