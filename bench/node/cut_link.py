"""A TCP link that can be cut or fall silent: it stands between a node and what the node follows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from fastevm.bench.node.launch import HOST, START_SECONDS

PIECE: Final = 65_536  # bytes
LOOK_SECONDS: Final = 0.05  # between looks whether a silent link speaks again


class LoopThread:
    """An event loop in a thread of its own, for clients beside a test or a load that blocks."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine that runs on the loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(START_SECONDS)

    def close(self) -> None:
        """Cancel what runs, and end the thread."""
        self.run(self._cancel())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(START_SECONDS)
        self.loop.close()

    async def _cancel(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CutLink:
    """Passes bytes between its own ``port`` and the port ``target``, unless a fault is switched on.

    ``cut``: connections are reset and new ones refused. ``silent``: they stay open and nothing
    passes.
    """

    def __init__(self, thread: LoopThread, target: int) -> None:
        self.thread, self.target = thread, target
        self.is_cut = self.is_silent = False
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server = thread.run(self._listen())
        self.port = int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Reset all connections, and those that come until ``mend``."""
        self.is_cut = True
        self.thread.run(self._reset())

    def silence(self) -> None:
        """Let nothing pass until ``mend``."""
        self.is_silent = True

    def mend(self) -> None:
        """Let everything pass again."""
        self.is_cut = self.is_silent = False

    def close(self) -> None:
        """Stop listening, and end all connections."""
        self._server.close()
        self.thread.run(self._reset())

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, HOST, 0)

    async def _reset(self) -> None:
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            if not self.is_cut:
                with suppress(OSError):
                    source, sink = await asyncio.open_connection(HOST, self.target)
                    writers.append(sink)
                    self._open.update(writers)
                    await asyncio.gather(self._pass(reader, sink), self._pass(source, writer))
        finally:
            for one in writers:
                self._open.discard(one)
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes until one side ends; then end the other."""
        while data := await reader.read(PIECE):
            while self.is_silent:
                await asyncio.sleep(LOOK_SECONDS)
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side ended")
