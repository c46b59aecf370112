"""Hands slices to the listeners of the feed: bounded, and none slows another or the builder."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastevm.builder.pending import PendingBlock
from fastevm.chain.metrics import FAULTS, Meters
from fastevm.wire.feed import FeedSlice, compress, encode, slice_of

log = logging.getLogger(__name__)

QUEUE_MESSAGES = 100  # that a reader may be behind before it is cut off
MAX_READERS = 100


class SlowReader(Exception):
    """A reader fell so far behind that it missed messages; it should connect again."""


@dataclass(slots=True)
class FeedFaults:
    """Switches for tests of followers: what happens to the next messages, each once."""

    drop: int = 0
    duplicate: int = 0
    delay: float = 0.0
    reorder: int = 0
    _held: list[FeedSlice] = field(default_factory=list)

    def apply(self, message: FeedSlice, meters: Meters) -> list[tuple[float, FeedSlice]]:
        """The messages to send instead of this one, each after some seconds."""
        if self.drop:
            self.drop -= 1
            meters.count(FAULTS.format("drop"))
            return []
        if self.reorder:
            self.reorder -= 1
            self._held.append(message)
            meters.count(FAULTS.format("reorder"))
            return []
        held, self._held = self._held, []
        delay, self.delay = self.delay, 0.0
        out = [(delay, message), *((delay, one) for one in held)]
        if delay:
            meters.count(FAULTS.format("delay"))
        if self.duplicate:
            self.duplicate -= 1
            meters.count(FAULTS.format("duplicate"))
            out.append((delay, message))
        return out


class Frame:
    """A message in both forms; the compressed one is made once, when somebody wants it."""

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
    """The feed of one node. ``publish`` belongs to the builder's thread, the rest to the loop."""

    def __init__(self, meters: Meters) -> None:
        self.meters = meters
        self.faults = FeedFaults()
        self._readers: set[FeedReader] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last_id: str | None = None

    @property
    def readers(self) -> int:
        """How many listen."""
        return len(self._readers)

    def publish(self, pending: PendingBlock, first_new: int = 0) -> None:
        """Send a slice to everybody who listens now."""
        previous, self._last_id = (
            self._last_id,
            f"{pending.header.number}-{pending.slice_index}",
        )
        loop = self._loop
        if loop is None or not self._readers:
            return
        for delay, message in self.faults.apply(slice_of(pending, previous), self.meters):
            frame = Frame(encode(message))
            self.meters.count("feed_messages_sent_total")
            try:
                if delay:
                    loop.call_soon_threadsafe(loop.call_later, delay, self._deliver, frame)
                else:
                    loop.call_soon_threadsafe(self._deliver, frame)
            except RuntimeError:  # the loop is closed: nobody listens any more
                self._loop = None
                return

    def open(self) -> "FeedReader":
        """Begin to listen; FeedReader.close ends it. ConnectionRefusedError beyond 100 readers."""
        if len(self._readers) >= MAX_READERS:
            raise ConnectionRefusedError("too many readers of the feed")
        self._loop = asyncio.get_running_loop()
        reader = FeedReader(self)
        self._readers.add(reader)
        return reader

    def drop(self, reader: "FeedReader") -> None:
        """Forget a reader."""
        self._readers.discard(reader)

    def _deliver(self, frame: Frame) -> None:
        for reader in list(self._readers):
            reader.offer(frame)


class FeedReader:
    """The messages that one listener has still to get."""

    def __init__(self, hub: FeedHub) -> None:
        self._hub = hub
        self._waiting: deque[Frame] = deque()
        self._arrived = asyncio.Event()
        self._lost = False

    def offer(self, frame: Frame) -> None:
        """Queue a message; a full queue ends the reader."""
        if len(self._waiting) >= QUEUE_MESSAGES:
            self._lost = True
            self._waiting.clear()
            self._hub.meters.count("feed_slow_readers_total")
            self._hub.drop(self)
        else:
            self._waiting.append(frame)
        self._arrived.set()

    async def frames(self) -> AsyncIterator[Frame]:
        """The messages as they come. SlowReader when some were lost."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self._lost:
                raise SlowReader
            while self._waiting:
                yield self._waiting.popleft()

    def close(self) -> None:
        """Stop listening."""
        self._hub.drop(self)
