"""The sync service of a follower: canonical blocks over JSON-RPC, slices over the feed.

The two connections are independent and are reopened when they break. The upstream decides what is
canonical. If the feed cannot be followed, there is no pending block. If the feed is lost, the
pending block stays until it is too old, or until the head reaches its number.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from threading import RLock
from typing import Any, Final, TypeVar

from fastevm.chain.chain import Chain
from fastevm.chain.metrics import MetricsRegistry
from fastevm.core.execution.types import Block
from fastevm.errors import FastevmError
from fastevm.node.following.block_import import BlockImport, ForeignChain
from fastevm.node.following.feed_follower import FeedFollower
from fastevm.node.following.link import Link
from fastevm.node.following.upstream import Upstream, UpstreamError
from fastevm.node.thread_priority import raise_priority
from fastevm.rpc_client.asynchronous import open_session, reason_of
from fastevm.rpc_client.messages import shown_address
from fastevm.rpc_types.feed import MAX_MESSAGE_BYTES, FeedError
from fastevm.rpc_types.feed_reader import FeedForm, FeedHead, FeedReader

PENDING_AGE: Final = 5.0
"""Seconds after which the pending block is withdrawn if the feed is lost."""

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0  # seconds between attempts to connect
# shorter than LONGEST_PAUSE, because the pending block ages quickly; also used for a feed without
# slices
FEED_LONGEST_PAUSE = 0.8
PING_SECONDS = 2.0  # seconds between pings on an idle feed; a pong must arrive within half of that
SILENCE_SECONDS = 5.0  # seconds without a message after which the feed is reconnected
FEED_FORM: Final = 'feed_form{{form="{}",frames="{}"}}'  # gauge: form of the feed
THREADS: Final = 2  # for slices and for blocks; both need the chain's lock to add them
FORWARDS_LIMIT: Final = 1_024  # transactions waiting for the upstream
FORWARDS_AT_ONCE: Final = 64  # forwarded concurrently; an HTTP client has 100 connections

T = TypeVar("T")


class Backoff:
    """Computes pauses between attempts. The pauses double until an attempt succeeds."""

    def __init__(self, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> None:
        self.first, self.longest = first, longest
        self._next = first

    def reset(self) -> None:
        """Resets the pause after a success."""
        self._next = self.first

    def pause(self) -> float:
        """Returns the seconds to wait before the next attempt, and doubles the pause."""
        pause = min(self.longest, self._next)
        self._next = min(self.longest, pause * 2)
        return pause


class SyncService:
    """The two tasks of a follower. ``start`` and ``stop`` run on its event loop.

    ``on_foreign(text)`` is called after every attempt that finds the upstream on another chain.
    """

    def __init__(
        self,
        chain: Chain,
        follower: FeedFollower,
        *,
        add_block: Callable[[Block], Any],
        lock: RLock,
        metrics: MetricsRegistry,
        upstream_url: str,
        feed_url: str | None = None,
        poll_seconds: float = 0.2,
        first_pause: float = FIRST_PAUSE,
        jump: Callable[[Block], None] | None = None,
        lag_seconds: float = 0.0,
        pending_age: float = PENDING_AGE,
    ) -> None:
        """Creates the service. ``jump`` and ``lag_seconds``: see :class:`BlockImport`.

        ``pending_age``: if the feed is lost, the pending block stays until its newest slice is this
        many seconds old; 0: no limit.
        """
        self.chain, self.follower, self.metrics = chain, follower, metrics
        self.feed_url, self.poll_seconds = feed_url, poll_seconds
        self.first_pause, self.pending_age = first_pause, pending_age
        self._upstream_link = Link("upstream", metrics)
        self._feed_link = Link("feed", metrics, loss=loss_of_the_feed(pending_age))
        self._expiry: asyncio.Task[None] | None = None
        self.upstream = Upstream(upstream_url, on_head=self._head_announced)
        self.block_import = BlockImport(
            chain, self.upstream, add_block=add_block, lock=lock, metrics=metrics, jump=jump,
            lag_seconds=lag_seconds, in_thread=self._in_thread,
        )  # fmt: skip
        self.on_foreign: Callable[[str], None] | None = None
        self._in_sync_at = time.monotonic()
        self._feed_form: str | None = None  # name of the gauge that is 1
        self._heads_only = False
        self._announced = asyncio.Event()
        self._forwarding = 0
        self._sending = asyncio.Semaphore(FORWARDS_AT_ONCE)
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads: ThreadPoolExecutor | None = None

    @property
    def upstream_age(self) -> float:
        """Seconds since this node last had the upstream's head, or since the start."""
        return time.monotonic() - self._in_sync_at

    @property
    def feed_age(self) -> float | None:
        """Seconds since a message last became pending state. None without a feed of slices."""
        return self.follower.age if self.has_slices else None

    @property
    def has_slices(self) -> bool:
        """Whether there is a feed that has not turned out to send only headers."""
        return self.feed_url is not None and not self._heads_only

    @property
    def connections(self) -> dict[str, bool]:
        """Whether the connections to the upstream and, if any, to the feed are open, by name."""
        links = [self._upstream_link, *([] if self.feed_url is None else [self._feed_link])]
        return {link.name: link.holds for link in links}

    async def start(self) -> None:
        """Starts the tasks and returns immediately."""
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(THREADS, "fastevm-follower", raise_priority)
        self.block_import.start()
        self.follower.start()
        follow_blocks = self._forever(self._follow_blocks, self._upstream_link)
        self._tasks.append(asyncio.create_task(follow_blocks))
        if self.feed_url is not None:
            follow_feed = self._forever(self._follow_feed, self._feed_link)
            self._tasks.append(asyncio.create_task(follow_feed))

    async def stop(self) -> None:
        """Stops the tasks and closes the connections."""
        self.block_import.stop()
        self.follower.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._end_expiry()
        self._tasks.clear()
        self._loop = None
        if self._threads is not None:
            self._threads.shutdown(wait=False)
        await self.upstream.close()

    async def _in_thread(self, call: Callable[..., T], *args: Any) -> T:
        """Runs a call in a thread whose priority is above the threads that answer requests.

        Otherwise clients that keep all cores busy would delay slices and blocks by seconds.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *args)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts ``work`` on the event loop of the service. Thread-safe. Raises UpstreamError."""
        if self._loop is None:
            work.close()
            raise UpstreamError("the upstream node is not connected")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def forward(self, raw: bytes) -> None:
        """Submits a transaction to the upstream. Raises RpcRefusal or UpstreamError."""
        if self._forwarding >= FORWARDS_LIMIT:
            raise UpstreamError(f"{FORWARDS_LIMIT} transactions wait for the upstream node already")
        self._forwarding += 1
        try:
            async with self._sending:
                if self._loop is None:
                    raise UpstreamError("the node stops")
                await self.upstream.call("eth_sendRawTransaction", "0x" + raw.hex())
        finally:
            self._forwarding -= 1

    async def _forever(self, attempt: Callable[[Backoff], Awaitable[None]], link: Link) -> None:
        import aiohttp  # slow to import and only needed by followers

        backoff = Backoff(self.first_pause)
        while True:
            try:
                await attempt(backoff)
            except (FastevmError, aiohttp.ClientError, OSError, TimeoutError) as error:
                link.broke(error)
            except Exception as error:
                log.exception("%s failed", link.name)
                link.broke(error)
            brings_pending = link is self._feed_link or self.chain.has_base_time
            backoff.longest = FEED_LONGEST_PAUSE if brings_pending else LONGEST_PAUSE
            await asyncio.sleep(backoff.pause())

    # --- the feed ---------------------------------------------------------------------------------

    async def _follow_feed(self, backoff: Backoff) -> None:
        import aiohttp

        assert self.feed_url is not None
        name = shown_address(self.feed_url)  # the path may contain a key
        try:
            async with (
                open_session() as session,
                await asyncio.wait_for(
                    session.ws_connect(
                        self.feed_url, heartbeat=PING_SECONDS, max_msg_size=MAX_MESSAGE_BYTES
                    ),
                    SILENCE_SECONDS,
                ) as socket,
            ):
                self._feed_link.opened()
                self._end_expiry()
                reader = FeedReader()
                while True:
                    # a timeout of `receive` would restart with every pong
                    async with asyncio.timeout(SILENCE_SECONDS):
                        message = await socket.receive()
                    if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                        raise UpstreamError(f"{name}: the feed ended")
                    backoff.reset()
                    if await self._in_thread(self._receive, reader, message.data):
                        self._announced.set()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise UpstreamError(f"{name}: {reason_of(error)}") from None
        finally:
            self._feed_form_is(None)
            if self._feed_link.holds and self._loop is not None:
                self._expiry = asyncio.create_task(self._expire())

    async def _expire(self) -> None:
        """Withdraws the pending block of a lost feed when its newest slice is too old."""
        await self._in_thread(self.follower.interrupted)
        if not self.pending_age:
            return
        while (left := self.pending_age - self.follower.age) > 0:
            await asyncio.sleep(left)
        if self.follower.latest is not None:
            log.warning("feed: no slice for %g s: pending means latest now", self.pending_age)
        await self._in_thread(self.follower.withdraw, "the feed is not connected")

    def _end_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = None

    def _receive(self, reader: FeedReader, frame: str | bytes) -> bool:
        """Processes a message. Returns whether it announces an unknown canonical block."""
        try:
            found = reader.read(frame)
        except FeedError as error:
            log.warning("feed: %s", error)
            self.metrics.count("feed_decode_errors_total")
            return False
        if found is None:
            return False
        if self._feed_form is None:
            self._feed_form_is(reader)
        if isinstance(found, FeedHead):
            self.metrics.count("feed_heads_total")
            return not self.chain.knows(found.hash)
        self.follower.receive(found)
        return False

    def _feed_form_is(self, reader: FeedReader | None) -> None:
        """Records the format of a connection's first message in metrics and log."""
        if self._feed_form is not None:
            self.metrics.set(self._feed_form, 0)
        self._feed_form = None
        if reader is not None and reader.form is not None:
            frames = "brotli" if reader.compressed else "json"
            log.info("the feed sends %s as %s", reader.form.value, frames)
            self._heads_only = reader.form is FeedForm.HEADERS
            self._feed_form = FEED_FORM.format(reader.form.value, frames)
            self.metrics.set(self._feed_form, 1)

    # --- canonical blocks -------------------------------------------------------------------------

    def _head_announced(self) -> None:
        self._announced.set()

    async def _follow_blocks(self, backoff: Backoff) -> None:
        try:
            await self.block_import.check_identity()
            self._upstream_link.opened()
            while True:
                self._announced.clear()
                asked_at = time.monotonic()  # the head is at least as new as this time
                if await self.block_import.follow_head():
                    self._in_sync_at = asked_at
                self.metrics.set("upstream_foreign", 0)
                backoff.reset()
                with contextlib.suppress(TimeoutError):
                    # not wait_for, which can swallow a cancellation before Python 3.12
                    async with asyncio.timeout(self.poll_seconds):
                        await self._announced.wait()
        except ForeignChain as error:
            self.metrics.count("upstream_foreign_total")
            self.metrics.set("upstream_foreign", 1)
            await self._in_thread(self.follower.withdraw, "the upstream is on another chain")
            if self.on_foreign is not None:
                self.on_foreign(str(error))
            raise


def loss_of_the_feed(pending_age: float) -> str:
    """Returns the consequence of losing the feed, for the log."""
    kept = f"for up to {pending_age:g} s" if pending_age else "until the head moves past it"
    return f"the pending block is kept {kept}"


async def fetch_block(url: str, number: int = 0) -> dict[str, Any]:
    """Returns a block of the upstream as JSON. Retries until the upstream answers."""
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
