"""The queue of messages to one connection, bounded in messages and bytes."""

import asyncio
from collections import deque

from fastevm.rpc.traffic import Holding

Frame = tuple[bytes, ...]  # the parts of one message; connections may share parts


class OutboxOverflow(Exception):
    """Too many bytes are queued for a client."""


class Outbox:
    """Queued messages in order. Used on the event loop only.

    Answers wait while the queue is full (``put``): a client that does not read them gets no more
    answers computed. Notifications do not wait (``offer``), because one slow reader must not delay
    the producer. Waiting answers count: `OutboxOverflow` is raised above ``hard_size``, unless
    nothing else is queued. ``holding`` counts the memory of all messages.
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
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def full(self) -> bool:
        """Whether the queue is full."""
        return len(self._frames) >= self.messages or self._bytes >= self.size

    @property
    def fullness(self) -> str:
        """Which limit the queue has reached, as a text for the client."""
        if len(self._frames) >= self.messages:
            return f"its queue of {self.messages} messages is full"
        return f"its queue of {self.size} bytes is full"

    async def put(self, frame: Frame) -> None:
        """Add a message; waits while the queue is full. Raises `OutboxOverflow`."""
        size = sum(map(len, frame))
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
        self.push(frame)

    def clear(self) -> None:
        """Drop the queued messages."""
        self._frames.clear()
        self._bytes = 0
        self._count()

    def offer(self, frame: Frame) -> bool:
        """Add a message unless the queue is full. Returns whether it was added."""
        if self.full:
            return False
        self.push(frame)
        return True

    def push(self, frame: Frame) -> None:
        """Add a message even to a full queue: the last message to a subscriber."""
        size = sum(map(len, frame))
        self._frames.append(frame)
        self._bytes += size
        self._count()
        self._filled.set()

    async def take(self) -> Frame:
        """Remove the oldest message; waits for one."""
        while not self._frames:
            self._filled.clear()
            await self._filled.wait()
        frame = self._frames.popleft()
        size = sum(map(len, frame))
        self._bytes -= size
        self._count()
        if not self.full:
            self._room.set()
        return frame

    def _count(self) -> None:
        if self.holding is not None:
            self.holding.hold(0, self._bytes + self._waiting)
