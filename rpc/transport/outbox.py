"""The queue of messages to one connection, bounded in messages and bytes."""

import asyncio
from collections import deque

from fastevm.rpc.traffic import Holding

Frame = tuple[bytes, ...]  # the parts of one message; several connections may share a part


class OutboxOverflow(Exception):
    """More waits for a client than may."""


class Outbox:
    """Messages in their order. All of it belongs to the event loop.

    Answers wait for room (``put``): a client that does not read them gets no further ones made.
    Notifications do not wait (``offer``): the producer must not be held up by one reader. Answers
    that wait count: beyond ``hard_size`` `OutboxOverflow` is raised, unless the answer is the only
    thing that waits. ``holding`` counts the memory of all messages.
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
        self._waiting = 0  # bytes of answers that wait for room
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
        """Which limit keeps notifications out, in words for the client."""
        if len(self._frames) >= self.messages:
            return f"its queue of {self.messages} messages is full"
        return f"its queue of {self.size} bytes is full"

    async def put(self, frame: Frame) -> None:
        """Add a message; waits while the queue is full."""
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
        """Drop what waits."""
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
