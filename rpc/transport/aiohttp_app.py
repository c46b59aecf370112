"""The whole HTTP server behind the short way of a listener, loaded when somebody needs it.

A node whose clients send plain requests never has to wait for aiohttp: loading it takes longer than
all else between a node's start and its first answer. It is loaded by a thread, soon after the start
or for the first connection that is not plain, which waits for it without anything read beyond what
had come.
"""

import asyncio
import logging
from importlib import import_module
from typing import Any, Final

from fastevm.rpc.dispatch.dispatcher import Dispatcher

JSON_TYPE: Final = "application/json"
ACCEPTED_TYPES: Final = frozenset((JSON_TYPE, "application/json-rpc", "application/jsonrequest"))

LOAD_AFTER: Final = 0.5  # seconds after the start; the first requests come before
MODULE: Final = "fastevm.rpc.transport.app"  # with all that it imports

log: Final = logging.getLogger("fastevm.rpc")


def answer_headers(allow_origin: str | None) -> dict[str, str]:
    """Return the headers of every answer: which pages may read it."""
    return {} if allow_origin is None else {"Access-Control-Allow-Origin": allow_origin}


class AiohttpApp:
    """aiohttp's server of one listener, or nothing yet.

    ``headers``: of every answer. ``keepalive`` and ``shutdown`` in seconds, as of aiohttp's runner.
    """

    def __init__(
        self, dispatcher: Dispatcher, headers: dict[str, str], *, keepalive: float, shutdown: float
    ) -> None:
        self.dispatcher = dispatcher
        self.headers = headers
        self.keepalive, self.shutdown = keepalive, shutdown
        self.waiting: set[WaitingConnection] = set()
        self._runner: Any = None
        self._later: asyncio.TimerHandle | None = None
        self._loading: asyncio.Task[None] | None = None

    def load_soon(self) -> None:
        """Load before anybody needs it, but after the first answers."""
        self._later = asyncio.get_running_loop().call_later(LOAD_AFTER, self.load)

    def load(self) -> None:
        """Begin to load, unless that has been done."""
        if self._runner is None and self._loading is None:
            self._loading = asyncio.create_task(self._load())
            self._loading.add_done_callback(self._loaded)

    def protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol of a connection that is handed over."""
        if self._runner is not None:
            return self._new_protocol()
        self.load()
        return WaitingConnection(self)

    async def close(self) -> None:
        """Let open requests end; who waits is sent away."""
        if self._later is not None:
            self._later.cancel()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        if self._runner is not None:
            await self._runner.cleanup()

    async def _load(self) -> None:
        app = await asyncio.to_thread(import_module, MODULE)
        runner = app.Endpoint(self.dispatcher, self.headers).runner(self.keepalive, self.shutdown)
        await runner.setup()
        self._runner = runner

    def _loaded(self, task: asyncio.Task[None]) -> None:
        self._loading = None
        if not task.cancelled() and task.exception() is not None:
            log.error("the HTTP server could not be loaded", exc_info=task.exception())
        for connection in tuple(self.waiting):
            if self._runner is None:
                connection.transport.abort()
            else:
                connection.hand_over(self._new_protocol())

    def _new_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._runner.server()
        return protocol


class WaitingConnection(asyncio.Protocol):
    """A connection that waits for the server behind."""

    __slots__ = ("app", "data", "transport")

    def __init__(self, app: AiohttpApp) -> None:
        self.app = app
        self.data = b""
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read no more."""
        self.transport = transport
        self.transport.pause_reading()
        self.app.waiting.add(self)

    def data_received(self, data: bytes) -> None:
        """Keep what had come."""
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        """The client has left."""
        self.app.waiting.discard(self)

    def hand_over(self, protocol: Any) -> None:
        """Let the server behind have the connection."""
        self.app.waiting.discard(self)
        if self.transport.is_closing():
            return
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(self.data)
        self.transport.resume_reading()
