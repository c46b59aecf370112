"""A TCP proxy between a node and its upstream that injects faults on demand."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from fastevm.bench.node.launch import HOST, LoopThread

PIECE: Final = 65_536  # bytes forwarded at a time
LOOK_SECONDS: Final = 0.05  # seconds between checks whether a silent link works again


class CutLink:
    """Forwards bytes between its own ``port`` and the port ``target``, unless a fault is active.

    ``cut`` resets all connections and rejects new ones. ``silence`` keeps connections open and
    forwards nothing. ``delay`` delays every piece. ``half_close`` ends the stream of answers and
    still forwards requests.
    """

    def __init__(self, thread: LoopThread, target: int) -> None:
        self.thread, self.target = thread, target
        self.is_cut = self.is_silent = self.is_half_closed = False
        self.delay_seconds = 0.0
        self._open: set[asyncio.StreamWriter] = set()
        # writers of the connections that clients opened
        self._clients: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server = thread.run(self._listen())
        self.port = int(self._server.sockets[0].getsockname()[1])

    def cut(self) -> None:
        """Resets all connections, and every new connection until ``mend``."""
        self.is_cut = True
        self.thread.run(self._reset())

    def silence(self) -> None:
        """Stops forwarding until ``mend``."""
        self.is_silent = True

    def delay(self, seconds: float) -> None:
        """Delays every piece by ``seconds`` in both directions until ``mend``."""
        self.delay_seconds = seconds

    def half_close(self) -> None:
        """Closes the stream of answers to the node, and discards answers until ``mend``.

        Requests from the node are still forwarded.
        """
        self.is_half_closed = True
        self.thread.run(self._end_answers())

    def mend(self) -> None:
        """Ends the fault."""
        self.is_cut = self.is_silent = self.is_half_closed = False
        self.delay_seconds = 0.0

    def close(self) -> None:
        """Stops listening and closes all connections."""
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
        """Forwards bytes until one side closes, then closes the other side."""
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
