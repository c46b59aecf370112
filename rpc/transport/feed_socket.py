"""The feed of pre-confirmed slices: a send-only WebSocket, as text or compressed with Brotli."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

from aiohttp import WSCloseCode, web

from fastevm.node.following import SlowReader
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.connection import connection_of
from fastevm.rpc.transport.routes import EARLY_FRAMES
from fastevm.rpc.transport.websocket_channel import WebSocketChannel

PING_SECONDS: Final = 15.0
READ_LIMIT: Final = 4_096  # largest message in bytes from a reader, which should send none
SEND_SECONDS: Final = 10.0  # longest time for one frame; a slower reader is disconnected


class FeedRoute:
    """GET ``/feed``. With ``?compress=br``, or if the hub requires it, frames are binary."""

    def __init__(self, hub: Any, limits: Limits, address_of: Callable[[web.Request], str]) -> None:
        self.hub = hub
        self.address_of = address_of
        self.limits = limits
        self._sockets: set[web.WebSocketResponse] = set()

    def serve(self, app: web.Application) -> None:
        """Add the route to an application."""
        app.router.add_get("/feed", self.handle)
        app.on_shutdown.append(self._hang_up)

    async def _hang_up(self, app: web.Application) -> None:
        for socket in tuple(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY, drain=False)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Send every slice from now on until the reader disconnects or falls behind."""
        packed = self.hub.always_packed or request.query.get("compress") == "br"
        connection = connection_of(request)
        if connection is not None and not connection.may_become_socket():
            return web.Response(status=400, text=f"{EARLY_FRAMES}\n")
        try:
            reader = self.hub.open(
                self.address_of(request),
                limit=self.limits.feed_readers,
                address_limit=self.limits.address_feed_readers,
            )
        except ConnectionRefusedError as error:
            return web.Response(status=429, text=f"{error}\n")
        socket = web.WebSocketResponse(
            heartbeat=PING_SECONDS, max_msg_size=READ_LIMIT, compress=False
        )
        try:
            try:
                await socket.prepare(request)
            except ConnectionError:  # the client left before the upgrade
                return socket
            if connection is not None:
                connection.becomes_socket()
            self._sockets.add(socket)
            sender = asyncio.create_task(_send(socket, reader, packed=packed))
            try:
                async for message in socket:  # readers need not send anything
                    if connection is not None:
                        data = message.data
                        connection.message_taken(data.encode() if isinstance(data, str) else data)
            finally:
                sender.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await sender
        finally:
            self._sockets.discard(socket)
            reader.close()
        return socket


async def _send(socket: web.WebSocketResponse, reader: Any, *, packed: bool) -> None:
    channel = WebSocketChannel(socket)
    try:
        async for frame in reader.frames():
            async with asyncio.timeout(SEND_SECONDS):
                if packed:
                    await channel.send_shared(await frame.packed(), binary=True)
                else:
                    await channel.send_shared(frame.text)
    except (SlowReader, TimeoutError):
        await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too slow")
    except (ConnectionError, RuntimeError):
        await socket.close()
