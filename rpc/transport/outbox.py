"""What waits to be sent to one connection: a queue with a bound in messages and in bytes."""

import asyncio
from collections import deque

Frame = tuple[bytes, ...]  # the parts of one message; several connections may share a part


class Outbox:
    """Messages in their order. All of it belongs to the event loop.

    Answers wait for room (``put``): a client that does not read them gets no further ones made.
    Notifications do not wait (``offer``): the producer must not be held up by one reader.
    """

    def __init__(self, *, messages: int, size: int) -> None:
        self.messages = messages
        self.size = size
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._frames)

    @property
    def full(self) -> bool:
        """Whether nothing more may be added before something was taken."""
        return len(self._frames) >= self.messages or self._bytes >= self.size

    async def put(self, frame: Frame) -> None:
        """Add a message, as soon as there is room."""
        while self.full:
            self._room.clear()
            await self._room.wait()
        self.push(frame)

    def offer(self, frame: Frame) -> bool:
        """Add a message if there is room; whether there was."""
        if self.full:
            return False
        self.push(frame)
        return True

    def push(self, frame: Frame) -> None:
        """Add a message without asking for room: for the last words to a subscriber."""
        self._frames.append(frame)
        self._bytes += sum(map(len, frame))
        self._filled.set()

    async def take(self) -> Frame:
        """Remove the oldest message, as soon as there is one."""
        while not self._frames:
            self._filled.clear()
            await self._filled.wait()
        frame = self._frames.popleft()
        self._bytes -= sum(map(len, frame))
        if not self.full:
            self._room.set()
        return frame
