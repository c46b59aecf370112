"""The aiohttp server of a listener, imported when a connection leaves the fast path.

Importing aiohttp takes longer than everything else between a node's start and its first answer. A
thread imports it when the listener is idle, or for the first connection that needs it. Reading from
that connection pauses until then.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from fastevm.rpc.transport.connection import Connection

LOAD_AFTER: Final = 2.0  # idle seconds after the start or the last request
LOAD_BY: Final = 10.0  # most seconds after the start, even if the listener is busy
LOAD_UNHURRIED: Final = 20.0  # idle seconds if nothing else requires aiohttp
MODULE: Final = "fastevm.rpc.transport.app"  # imports aiohttp and its dependencies

log: Final = logging.getLogger("fastevm.rpc")


class LazyApp:
    """Imports aiohttp for one listener. ``runner`` is the aiohttp server, None until the import.

    ``make(module)`` returns the runner of the application, where ``module`` is `MODULE`.
    ``heard()`` returns when the listener was last busy, in seconds of the loop's clock.
    """

    def __init__(self, make: Callable[[Any], Any], heard: Callable[[], float]) -> None:
        self.make, self.heard = make, heard
        self.waiting: set[WaitingProtocol] = set()
        self.runner: Any = None
        self._later: asyncio.TimerHandle | None = None
        self._idle = LOAD_AFTER
        self._loading: asyncio.Task[None] | None = None

    def load_soon(self, *, hurries: bool = True) -> None:
        """Import aiohttp before it is needed, when the listener is idle: the import slows requests.

        ``hurries=False`` waits for a longer idle time. Short programs that stay on the fast path
        then never pay for the import, which takes 0.15 s of CPU time.
        """
        loop = asyncio.get_running_loop()
        latest = loop.time() + LOAD_BY if hurries else math.inf
        self._idle = LOAD_AFTER if hurries else LOAD_UNHURRIED
        self._later = loop.call_later(self._idle, self._load_if_idle, latest)

    def load(self) -> None:
        """Start the import, unless it has started."""
        if self.runner is None and self._loading is None:
            self._loading = asyncio.create_task(self.loaded_runner())
            self._loading.add_done_callback(self._loaded)

    def adopt(self, connection: Connection, data: bytes) -> None:
        """Take over a connection. ``data`` are the received bytes."""
        if self.runner is not None:
            connection.delegate_to(self.runner.server(), data)
            return
        self.load()
        connection.delegate_to(WaitingProtocol(self, connection), data)

    async def close(self) -> None:
        """Let open requests finish, and close the connections that wait for the import."""
        if self._later is not None:
            self._later.cancel()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        if self.runner is not None:
            await self.runner.cleanup()

    def _load_if_idle(self, latest: float) -> None:
        loop = asyncio.get_running_loop()
        due = min(self.heard() + self._idle, latest)
        if loop.time() >= due:
            self.load()
        else:
            self._later = loop.call_at(due, self._load_if_idle, latest)

    async def loaded_runner(self) -> None:
        """Import aiohttp and set up the application."""
        runner = self.make(await asyncio.to_thread(import_module, MODULE))
        await runner.setup()
        self.runner = runner

    def _loaded(self, task: asyncio.Task[None]) -> None:
        self._loading = None
        if not task.cancelled() and task.exception() is not None:
            log.error("the HTTP server could not be loaded", exc_info=task.exception())
        for protocol in tuple(self.waiting):
            self.waiting.discard(protocol)
            if self.runner is None:
                protocol.connection.abort()
            else:
                protocol.hand_over(self.runner.server())


class WaitingProtocol(asyncio.Protocol):
    """Replaces aiohttp's protocol until aiohttp is imported. Reading pauses meanwhile."""

    def __init__(self, app: LazyApp, connection: Connection) -> None:
        self.app = app
        self.connection = connection
        self.data = b""
        app.waiting.add(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pause reading."""
        self.connection.transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Keep the bytes received before reading paused."""
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        """Forget the connection, because the client has left."""
        self.app.waiting.discard(self)

    def hand_over(self, protocol: Any) -> None:
        """Pass the connection and its bytes to aiohttp's protocol."""
        if self.connection.transport.is_closing():
            return
        self.connection.delegate_to(protocol, self.data)
        self.connection.transport.resume_reading()
