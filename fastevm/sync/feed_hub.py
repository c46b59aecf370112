"""Publishes slices to the readers of the feed through bounded queues."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastevm.builder.pending_block import PendingBlock
from fastevm.chain.metrics import FAULTS, MetricsRegistry
from fastevm.wire.feed import FeedSlice, compress, encode, slice_of

log = logging.getLogger(__name__)

QUEUE_MESSAGES = 100  # unsent messages of one reader; more of them end it
MAX_READERS = 100


class SlowReader(Exception):
    """A reader's queue overflowed and messages were lost; it should connect again."""


@dataclass(slots=True)
class FeedFaults:
    """Fault injection for tests of followers: what happens to the next messages."""

    drop: int = 0
    duplicate: int = 0
    delay: float = 0.0
    reorder: int = 0
    _held: list[FeedSlice] = field(default_factory=list)

    def apply(self, message: FeedSlice, metrics: MetricsRegistry) -> list[tuple[float, FeedSlice]]:
        """The messages to send in place of this one, each with a delay in seconds."""
        if self.drop:
            self.drop -= 1
            metrics.count(FAULTS.format("drop"))
            return []
        if self.reorder:
            self.reorder -= 1
            self._held.append(message)
            metrics.count(FAULTS.format("reorder"))
            return []
        held, self._held = self._held, []
        delay, self.delay = self.delay, 0.0
        out = [(delay, message), *((delay, one) for one in held)]
        if delay:
            metrics.count(FAULTS.format("delay"))
        if self.duplicate:
            self.duplicate -= 1
            metrics.count(FAULTS.format("duplicate"))
            out.append((delay, message))
        return out


class FeedFrame:
    """A message as text and, compressed on first use, as Brotli."""

    __slots__ = ("_packed", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._packed: bytes | None = None

    @property
    def packed(self) -> bytes:
        """The Brotli form."""
        if self._packed is None:
            self._packed = compress(self.text)
        return self._packed


class FeedHub:
    """The feed of one node; ``publish`` runs on the builder's thread, all else on the loop."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self.metrics = metrics
        self.faults = FeedFaults()
        self._readers: set[FeedReader] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_id: str | None = None

    @property
    def readers(self) -> int:
        """The number of readers."""
        return len(self._readers)

    def publish(self, pending: PendingBlock, first_new: int = 0) -> None:
        """Send a slice to all readers."""
        previous, self._last_id = (
            self._last_id,
            f"{pending.header.number}-{pending.slice_index}",
        )
        loop = self._loop
        if loop is None or not self._readers:
            return
        for delay, message in self.faults.apply(slice_of(pending, previous), self.metrics):
            frame = FeedFrame(encode(message))
            self.metrics.count("feed_messages_sent_total")
            try:
                if delay:
                    loop.call_soon_threadsafe(loop.call_later, delay, self._deliver, frame)
                else:
                    loop.call_soon_threadsafe(self._deliver, frame)
            except RuntimeError:  # the event loop is closed
                self._loop = None
                return

    def open(self) -> "FeedReader":
        """A new reader; FeedReader.close ends it. ConnectionRefusedError beyond 100 readers."""
        if len(self._readers) >= MAX_READERS:
            raise ConnectionRefusedError("too many readers of the feed")
        self._loop = asyncio.get_running_loop()
        reader = FeedReader(self)
        self._readers.add(reader)
        return reader

    def remove(self, reader: "FeedReader") -> None:
        """Remove a reader."""
        self._readers.discard(reader)

    def _deliver(self, frame: FeedFrame) -> None:
        for reader in list(self._readers):
            reader.offer(frame)


class FeedReader:
    """The queue of messages of one reader."""

    def __init__(self, hub: FeedHub) -> None:
        self._hub = hub
        self._queue: deque[FeedFrame] = deque()
        self._arrived = asyncio.Event()
        self._lost = False

    def offer(self, frame: FeedFrame) -> None:
        """Queue a message; a full queue ends the reader."""
        if len(self._queue) >= QUEUE_MESSAGES:
            self._lost = True
            self._queue.clear()
            self._hub.metrics.count("feed_slow_readers_total")
            self._hub.remove(self)
        else:
            self._queue.append(frame)
        self._arrived.set()

    async def frames(self) -> AsyncIterator[FeedFrame]:
        """The messages in order. SlowReader when some were lost."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._lost:
                raise SlowReader
            while self._queue:
                yield self._queue.popleft()

    def close(self) -> None:
        """Remove the reader from the feed."""
        self._hub.remove(self)
