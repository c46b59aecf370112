"""The queue of messages to one connection, bounded in entries and bytes."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

from fastevm.rpc.subscriptions.backlog import Parcel, Reader
from fastevm.rpc.traffic import Holding

Frame = tuple[bytes, ...]  # the parts of one message; connections may share parts
ENTRY_MEMORY: Final = 256  # bytes of an entry of the queue, without its messages


class OutboxOverflow(Exception):
    """Too many bytes are queued for a client."""


class Entry:
    """Messages that are queued together: an answer, or the notifications about one event.

    ``size`` is the number of bytes that only this queue holds. The messages of a ``parcel`` are
    shared with other queues and count in the parcel. ``wrap`` has the bytes before and after each
    message.
    """

    __slots__ = ("messages", "parcel", "reader", "sent", "size", "wrap")

    def __init__(
        self,
        messages: Sequence[bytes],
        *,
        wrap: tuple[bytes, bytes] | None = None,
        reader: Reader | None = None,
        parcel: Parcel | None = None,
    ) -> None:
        self.messages = messages
        self.wrap = wrap
        self.reader = reader
        self.parcel = parcel
        self.sent = 0  # number of messages already passed to the sender
        self.size = ENTRY_MEMORY + (0 if parcel is not None else sum(map(len, messages)))
        if parcel is not None and reader is not None:
            parcel.hold(reader)

    @property
    def is_done(self) -> bool:
        """Whether all messages were passed to the sender."""
        return self.sent >= len(self.messages)

    def move(self, frames: list[Frame], size: int) -> int:
        """Append the next frames: at least one, about ``size`` bytes. Returns their size."""
        moved, wrap = 0, self.wrap
        around = 0 if wrap is None else len(wrap[0]) + len(wrap[1])
        messages = self.messages
        while moved < size and self.sent < len(messages):
            message = messages[self.sent]
            frames.append((message,) if wrap is None else (wrap[0], message, wrap[1]))
            moved += len(message) + around
            self.sent += 1
        return moved

    def release(self) -> None:
        """Stop counting shared messages for the reader."""
        if self.parcel is not None and self.reader is not None:
            self.parcel.release(self.reader)


class Outbox:
    """Queued messages in order. Used on the event loop only.

    ``put`` waits while the queue is full, so that a client that does not read its answers causes no
    more work. ``offer`` does not wait: it refuses notifications if the queue is full, because one
    slow reader must not delay the producer.

    Answers that wait in ``put`` also use memory. ``put`` raises `OutboxOverflow` if queued messages
    and waiting answers together exceed ``hard_size``, unless the answer is the only message.
    ``holding`` counts the memory of all messages that only this queue has.
    """

    def __init__(
        self,
        *,
        messages: int,
        size: int,
        hard_size: int,
        holding: Holding | None = None,
    ) -> None:
        self.messages = messages
        self.size = size
        self.hard_size = hard_size
        self.holding = holding
        self._waiting = 0  # bytes of answers that wait for space in the queue
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._ends = False
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return len(self._entries) >= self.messages or self._bytes >= self.size

    @property
    def fullness(self) -> str:
        """Return which limit the queue has reached, as a text for the client."""
        if len(self._entries) >= self.messages:
            return f"its queue of {self.messages} messages is full"
        return f"its queue of {self.size} bytes is full"

    async def put(self, answer: bytes) -> None:
        """Add an answer. Waits while the queue is full. Raises `OutboxOverflow`."""
        entry = Entry((answer,))
        size = entry.size
        held = self._bytes + self._waiting
        if held and held + size > self.hard_size:
            raise OutboxOverflow
        self._waiting += size
        self._count()
        try:
            while self.full:
                self._room.clear()
                await self._room.wait()
        finally:
            self._waiting -= size
            self._count()
        self.push(entry)

    def clear(self) -> None:
        """Drop the queued messages."""
        for entry in self._entries:
            entry.release()
        self._entries.clear()
        self._bytes = 0
        self._count()

    def drop(self, reader: Reader) -> None:
        """Drop the queued messages of a reader."""
        kept: deque[Entry] = deque()
        for entry in self._entries:
            if entry.reader is reader:
                entry.release()
                self._bytes -= entry.size
            else:
                kept.append(entry)
        self._entries = kept
        self._count()
        if not self.full:
            self._room.set()

    def offer(self, entry: Entry) -> bool:
        """Add an entry unless the queue is full. Returns whether it was added."""
        if self.full:
            return False
        self.push(entry)
        return True

    def push(self, entry: Entry) -> None:
        """Add an entry even if the queue is full, as for the last message to a subscriber."""
        self._entries.append(entry)
        self._bytes += entry.size
        self._count()
        self._filled.set()

    def end(self) -> None:
        """Let `take` return nothing after the queued messages."""
        self._ends = True
        self._filled.set()

    async def take(self, size: int) -> list[Frame]:
        """Remove and return the oldest messages, of about ``size`` bytes.

        Waits for a message. Returns an empty list after `end`.
        """
        while not self._entries:
            if self._ends:
                return []
            self._filled.clear()
            await self._filled.wait()
        frames: list[Frame] = []
        while self._entries and size > 0:
            entry = self._entries[0]
            size -= entry.move(frames, size)
            if entry.is_done:
                self._entries.popleft()
                self._bytes -= entry.size
                entry.release()
        self._count()
        if not self.full:
            self._room.set()
        return frames

    def _count(self) -> None:
        if self.holding is not None:
            self.holding.hold(0, self._bytes + self._waiting)
