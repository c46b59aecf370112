"""A WebSocket as the channel of a session."""

from collections.abc import AsyncIterator

from aiohttp import WSMsgType, web

from fastevm.rpc.transport.outbox import Frame


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

    async def send(self, frame: Frame) -> None:
        """Send a text message. While the client does not read it, it is in memory once."""
        text = frame[0] if len(frame) == 1 else b"".join(frame)
        await self.socket.send_frame(text, WSMsgType.TEXT)
