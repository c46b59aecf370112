"""A TCP link with faults on demand, between a node and its upstream."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from fastevm.bench.node.launch import HOST, LoopThread

PIECE: Final = 65_536  # bytes
LOOK_SECONDS: Final = 0.05  # between looks whether a silent link speaks again


class CutLink:
    """Passes bytes between its own ``port`` and the port ``target``, unless a fault is switched on.

    ``cut``: connections are reset and new ones refused. ``silence``: they stay open and nothing
    passes. ``delay``: every piece waits. ``half_close``: answers end while requests still pass.
    """

    def __init__(self, thread: LoopThread, target: int) -> None:
        self.thread, self.target = thread, target
        self.is_cut = self.is_silent = self.is_half_closed = False
        self.delay_seconds = 0.0
        self._open: set[asyncio.StreamWriter] = set()
        self._clients: set[asyncio.StreamWriter] = set()  # of these, towards the node
        self._server: asyncio.Server = thread.run(self._listen())
        self.port = int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Resets all connections, and new connections until ``mend``."""
        self.is_cut = True
        self.thread.run(self._reset())

    def silence(self) -> None:
        """Let nothing pass until ``mend``."""
        self.is_silent = True

    def delay(self, seconds: float) -> None:
        """Hold every piece back for so long, in both directions, until ``mend``."""
        self.delay_seconds = seconds

    def half_close(self) -> None:
        """Send the end of the stream to the node and drop answers until ``mend``.

        What the node sends still passes.
        """
        self.is_half_closed = True
        self.thread.run(self._end_answers())

    def mend(self) -> None:
        """Let everything pass again."""
        self.is_cut = self.is_silent = self.is_half_closed = False
        self.delay_seconds = 0.0

    def close(self) -> None:
        """Stop listening, and end all connections."""
        self._server.close()
        self.thread.run(self._reset())

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, HOST, 0)

    async def _reset(self) -> None:
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _end_answers(self) -> None:
        for writer in tuple(self._clients):
            with suppress(OSError):
                writer.write_eof()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            if not self.is_cut:
                with suppress(OSError):
                    source, sink = await asyncio.open_connection(HOST, self.target)
                    writers.append(sink)
                    self._open.update(writers)
                    self._clients.add(writer)
                    await asyncio.gather(self._pass(reader, sink), self._pass(source, writer))
        finally:
            self._clients.discard(writer)
            for item in writers:
                self._open.discard(item)
                item.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes until one side ends; then end the other."""
        while data := await reader.read(PIECE):
            while self.is_silent:
                await asyncio.sleep(LOOK_SECONDS)
            if self.delay_seconds:
                await asyncio.sleep(self.delay_seconds)
            if self.is_half_closed and writer in self._clients:
                if writer.can_write_eof():
                    writer.write_eof()
                continue
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side ended")
