"""A channel between a session on the node's event loop and a client on another loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Final

from fastevm.rpc.transport.outbox import Frame

MESSAGES_AHEAD: Final = 1024  # messages sent but not yet read by the client


class LocalChannel:
    """Both ends of a channel. The node uses `messages` and `send`, the client the other methods."""

    listens_on = False

    def __init__(
        self, node_loop: asyncio.AbstractEventLoop, client_loop: asyncio.AbstractEventLoop
    ) -> None:
        self._node_loop, self._client_loop = node_loop, client_loop
        self._requests: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(MESSAGES_AHEAD)
        self.is_open = True

    # --- on the node's loop ---

    async def messages(self) -> AsyncIterator[bytes]:
        """Yields the messages of the client until the client closes the channel."""
        while (message := await self._requests.get()) is not None:
            yield message

    async def send(self, frames: Sequence[Frame]) -> None:
        """Sends messages to the client. Waits while too many are unread."""
        for frame in frames:
            await self._room.acquire()
            self._tell(b"".join(frame))

    def end(self) -> None:
        """Tells the client that no more messages will follow."""
        with suppress(ConnectionResetError):
            self._tell(None)

    def _tell(self, message: bytes | None) -> None:
        try:
            self._client_loop.call_soon_threadsafe(self._answers.put_nowait, message)
        except RuntimeError:  # the client's loop is closed
            raise ConnectionResetError from None

    # --- on the client's loop ---

    def write(self, message: bytes) -> None:
        """Sends a message. Raises ConnectionError if the channel is closed."""
        if not self.is_open:
            raise ConnectionError("the channel is closed")
        self._node_call(self._requests.put_nowait, message)

    async def read(self) -> bytes | None:
        """Returns the next message, or None at the end."""
        message = await self._answers.get()
        if message is None:
            self.is_open = False
            return None
        with suppress(ConnectionError):
            self._node_call(self._room.release)
        return message

    def close(self) -> None:
        """Closes the channel."""
        if self.is_open:
            self.is_open = False
            with suppress(ConnectionError):
                self._node_call(self._requests.put_nowait, None)

    def _node_call(self, function: object, *values: object) -> None:
        try:
            self._node_loop.call_soon_threadsafe(function, *values)  # type: ignore[arg-type]
        except RuntimeError:
            raise ConnectionError("the node has stopped") from None
