"""Sends slices to the readers of the feed through bounded queues."""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator

from msgspec import Struct, field

from fastevm.chain.metrics import FAULTS, MetricsRegistry
from fastevm.chain.pending_block import PendingBlock
from fastevm.rpc_types.feed import compress
from fastevm.rpc_types.feed_formats import FeedFormat, feed_text

log = logging.getLogger(__name__)

QUEUE_MESSAGES = 100  # unsent messages above which a reader is disconnected
# Bytes of unsent messages above which a reader is disconnected; one message always fits. Readers
# share messages, so all queues together hold little more.
QUEUE_BYTES = 64 * 1024 * 1024
PACKED_ON_LOOP = 64 * 1024  # bytes; a larger message is compressed in a thread


class SlowReader(Exception):
    """A reader's queue overflowed, so messages were lost. The reader should reconnect."""


class FeedFaults(Struct):
    """Injects faults to test followers: how many of the next messages to drop, reorder or
    change.
    """

    drop: int = 0
    duplicate: int = 0
    delay: float = 0.0
    reorder: int = 0
    _held: list[str] = field(default_factory=list)

    def apply(self, message: str, metrics: MetricsRegistry) -> list[tuple[float, str]]:
        """Returns the texts to send in place of a message, each with a delay in seconds."""
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
        out = [(delay, message), *((delay, item) for item in held)]
        if delay:
            metrics.count(FAULTS.format("delay"))
        if self.duplicate:
            self.duplicate -= 1
            metrics.count(FAULTS.format("duplicate"))
            out.append((delay, message))
        return out


class FeedFrame:
    """A message as UTF-8 text, which is compressed with Brotli on first use.

    All readers share a frame.
    """

    __slots__ = ("_packing", "text")

    def __init__(self, text: str) -> None:
        self.text = text.encode()
        self._packing: asyncio.Future[bytes] | None = None

    async def packed(self) -> bytes:
        """Returns the message compressed with Brotli."""
        if self._packing is None:
            if len(self.text) <= PACKED_ON_LOOP:
                self._packing = asyncio.get_running_loop().create_future()
                self._packing.set_result(compress(self.text))
            else:
                self._packing = asyncio.ensure_future(asyncio.to_thread(compress, self.text))
        return await asyncio.shield(self._packing)  # another reader may wait for it, too


class FeedHub:
    """The feed of a node. ``publish`` runs on the builder's thread, everything else on the loop.

    ``form``: the format of the messages. ``always_packed``: send Brotli to every reader, as the
    proxies of public feeds do.
    """

    def __init__(self, metrics: MetricsRegistry) -> None:
        self.metrics = metrics
        self.faults = FeedFaults()
        self.form, self.always_packed = FeedFormat.FASTEVM, False
        self._readers: set[FeedReader] = set()
        self._by_address: Counter[str] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_id: str | None = None

    @property
    def readers(self) -> int:
        """The number of readers."""
        return len(self._readers)

    def publish(self, pending: PendingBlock, first_new: int = 0) -> None:
        """Sends a slice to all readers."""
        previous, self._last_id = (
            self._last_id,
            f"{pending.header.number}-{pending.slice_index}",
        )
        loop = self._loop
        if loop is None or not self._readers:
            return
        message = feed_text(pending, self.form, previous)
        for delay, text in self.faults.apply(message, self.metrics):
            frame = FeedFrame(text)
            self.metrics.count("feed_messages_sent_total")
            try:
                if delay:
                    loop.call_soon_threadsafe(loop.call_later, delay, self._deliver, frame)
                else:
                    loop.call_soon_threadsafe(self._deliver, frame)
            except RuntimeError:  # the event loop is closed
                self._loop = None
                return

    def open(self, address: str, *, limit: int, address_limit: int) -> "FeedReader":
        """Returns a new reader for ``address``. The caller must end it with FeedReader.close.

        Raises ConnectionRefusedError beyond ``limit`` readers, or ``address_limit`` per address.
        """
        if len(self._readers) >= limit:
            raise ConnectionRefusedError(f"too many readers of the feed, limit {limit}")
        if self._by_address[address] >= address_limit:
            raise ConnectionRefusedError(
                f"too many readers of the feed at one address, limit {address_limit}"
            )
        self._loop = asyncio.get_running_loop()
        reader = FeedReader(self, address)
        self._readers.add(reader)
        self._by_address[address] += 1
        return reader

    def remove(self, reader: "FeedReader") -> None:
        """Removes a reader."""
        if reader in self._readers:
            self._readers.discard(reader)
            self._by_address -= Counter((reader.address,))

    def _deliver(self, frame: FeedFrame) -> None:
        for reader in list(self._readers):
            reader.offer(frame)


class FeedReader:
    """The queue of messages for one reader."""

    def __init__(self, hub: FeedHub, address: str) -> None:
        self.address = address
        self._hub = hub
        self._queue: deque[FeedFrame] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._lost = False

    def offer(self, frame: FeedFrame) -> None:
        """Queues a message. A full queue disconnects the reader."""
        if len(self._queue) >= QUEUE_MESSAGES or self._bytes > QUEUE_BYTES:
            self._lost = True
            self._queue.clear()
            self._bytes = 0
            self._hub.metrics.count("feed_slow_readers_total")
            self._hub.remove(self)
        else:
            self._queue.append(frame)
            self._bytes += len(frame.text)
        self._arrived.set()

    async def frames(self) -> AsyncIterator[FeedFrame]:
        """Yields the messages in order. Raises SlowReader if messages were lost."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._lost:
                raise SlowReader
            while self._queue:
                frame = self._queue.popleft()
                self._bytes -= len(frame.text)
                yield frame

    def close(self) -> None:
        """Removes the reader from the feed."""
        self._hub.remove(self)
