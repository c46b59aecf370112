"""Follows another node: its canonical blocks over JSON-RPC, its slices over the feed.

Both connections come and go on their own: what is missing is fetched, what cannot be followed makes
``pending`` mean ``latest``. The upstream node is the authority on what is canonical.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from threading import RLock
from typing import Any

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import Meters
from fastevm.errors import FastevmError
from fastevm.sync.block_import import BlockImport, ForeignChain
from fastevm.sync.follower import Follower
from fastevm.sync.upstream import Upstream, UpstreamError
from fastevm.types import Block
from fastevm.wire.feed import MAX_MESSAGE_BYTES, FeedError, decode

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0  # seconds between attempts to connect
PING_SECONDS = 1.0  # an idle feed is pinged; a pong must come within half of it
SILENCE_SECONDS = 5.0  # a feed without messages for so long is connected again


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
    """The two tasks of a node that follows; ``start`` and ``stop`` belong to its event loop.

    ``on_foreign(text)`` is called when the upstream turns out to be on another chain, again and
    again: attempts go on.
    """

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
        self.blocks = BlockImport(
            chain, self.upstream, add_block=add_block, lock=lock, meters=meters
        )
        self.on_foreign: Callable[[str], None] | None = None
        self._heard = time.monotonic()
        self._announced = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def upstream_age(self) -> float:
        """Seconds since the upstream's head was ours, or since the start."""
        return time.monotonic() - self._heard

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
        """Send a transaction on, from another thread; RpcRefusal or UpstreamError."""
        if self._loop is None:
            raise UpstreamError("the upstream node is not connected")
        call = self.upstream.call("eth_sendRawTransaction", "0x" + raw.hex())
        asyncio.run_coroutine_threadsafe(call, self._loop).result()

    async def _forever(self, attempt: Callable[[Backoff], Awaitable[None]], name: str) -> None:
        import aiohttp  # takes long to load, and only a node that follows another needs it

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
        import aiohttp

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
                    # a timeout of `receive` would begin anew with every pong
                    async with asyncio.timeout(SILENCE_SECONDS):
                        message = await socket.receive()
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
        try:
            await self.blocks.check_identity()
            self.meters.set("upstream_connected", 1)
            while True:
                self._announced.clear()
                await self.blocks.follow_head()
                self._heard = time.monotonic()
                self.meters.set("upstream_foreign", 0)
                backoff.reset()
                with contextlib.suppress(TimeoutError):
                    # not wait_for: before Python 3.12 it can swallow a cancellation
                    async with asyncio.timeout(self.poll_seconds):
                        await self._announced.wait()
        except ForeignChain as error:
            self.meters.count("upstream_foreign_total")
            self.meters.set("upstream_foreign", 1)
            await asyncio.to_thread(self.follower.withdraw, "the upstream is on another chain")
            if self.on_foreign is not None:
                self.on_foreign(str(error))
            raise


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
