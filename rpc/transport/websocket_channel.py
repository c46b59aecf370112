"""The messages of a WebSocket, as a session takes and gives them."""

from collections.abc import AsyncIterator

from aiohttp import WSMsgType, web

from fastevm.rpc.transport.outbox import Frame


class WebSocketChannel:
    """A WebSocket that was accepted."""

    listens_on = False  # its close frame ends both directions

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self.socket = socket

    async def messages(self) -> AsyncIterator[bytes]:
        """Text and binary messages alike."""
        async for message in self.socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                break
            yield message.data.encode() if message.type is WSMsgType.TEXT else message.data

    async def send(self, frame: Frame) -> None:
        """Send a text message."""
        await self.socket.send_str(b"".join(frame).decode())
