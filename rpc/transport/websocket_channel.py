"""A WebSocket as the channel of a session."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from aiohttp import WSMsgType, web

from fastevm.rpc.transport.outbox import Frame

FINAL: Final = 0x80  # bit of the first byte of a WebSocket frame (RFC 6455)
TEXT: Final = 1
BINARY: Final = 2
CONTINUATION: Final = 0
SHORT: Final = 126  # payloads below this length have a header of two bytes
MEDIUM: Final = 1 << 16  # payloads below this length have a header of four bytes
# bytes of one fragment of a large message: the transport copies only this much of shared messages
FRAGMENT: Final = 1 << 18


class WebSocketChannel:
    """An accepted WebSocket."""

    listens_on = False  # a WebSocket close frame ends both directions

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket

    async def messages(self) -> AsyncIterator[bytes]:
        """Yield text and binary messages as bytes."""
        async for message in self.socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                break
            yield message.data.encode() if message.type is WSMsgType.TEXT else message.data

    async def send(self, frames: Sequence[Frame]) -> None:
        """Send text messages.

        A message that the client has not read yet is in memory once, not also in a joined copy.

        Writes several short messages together, because aiohttp's separate writes take ten times as
        long.
        """
        if len(frames) == 1 and len(frames[0]) == 1:
            await self.socket.send_frame(frames[0][0], WSMsgType.TEXT)
            return
        parts: list[bytes] = []
        for frame in frames:
            size = sum(map(len, frame))
            if size > FRAGMENT:
                await self._write(parts)
                parts = []
                await self._send_fragments(frame)
            else:
                parts.append(header(FINAL | TEXT, size))
                parts += frame
        await self._write(parts)

    async def send_shared(self, message: bytes, *, binary: bool = False) -> None:
        """Send a message that several sockets share. Does not copy large messages."""
        await self._send_fragments((message,), BINARY if binary else TEXT)

    async def _send_fragments(self, frame: Frame, opcode: int = TEXT) -> None:
        """Send a message as fragments, between which control frames may be sent."""
        pieces = [
            memoryview(part)[at : at + FRAGMENT]
            for part in frame
            for at in range(0, len(part), FRAGMENT)
        ]
        for index, piece in enumerate(pieces):
            kind = opcode if index == 0 else CONTINUATION
            final = FINAL if index == len(pieces) - 1 else 0
            await self._write([header(kind | final, len(piece)), piece])

    async def _write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Write whole WebSocket frames. Waits while the transport has much unsent data."""
        writer = self.socket._writer  # aiohttp has no public method for prepared frames
        if writer is None or writer._closing or writer.transport.is_closing():
            raise ConnectionResetError("the WebSocket is closed")
        if parts:
            writer.transport.write(b"".join(parts))
        await writer.protocol._drain_helper()


def header(first: int, size: int) -> bytes:
    """Return the header of an unmasked WebSocket frame."""
    if size < SHORT:
        return bytes((first, size))
    if size < MEDIUM:
        return bytes((first, SHORT)) + size.to_bytes(2, "big")
    return bytes((first, SHORT + 1)) + size.to_bytes(8, "big")
