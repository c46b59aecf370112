"""JSON-RPC over a Unix socket, as geth and anvil have it (IPC).

Messages are JSON objects and arrays one after another; each answer and notification ends with a
line feed. The file of the socket belongs to who started the node, and nobody else may open it: what
HTTP checks of names, origins and keys does not apply.
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from fastevm.rpc.dialect import Dialect
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.dispatch.envelope import encode_error
from fastevm.rpc.errors import RpcError, wire_error
from fastevm.rpc.transport.access import DEFAULT_ACCESS, Access
from fastevm.rpc.transport.client_session import Session
from fastevm.rpc.transport.connection import memory_of
from fastevm.rpc.transport.json_stream import JsonStream, StreamFault
from fastevm.rpc.transport.outbox import Frame
from fastevm.rpc.transport.turns import Turns

READ_SIZE: Final = 1 << 18  # bytes that are read at once
OWNER_ONLY: Final = 0o600
PROBE_SECONDS: Final = 1.0  # that whoever listens already may take to answer
CLIENT: Final = "ipc"  # whom limits of one address count requests for
LINE_END: Final = b"\n"


class IpcListener(Struct, frozen=True):
    """A dialect served over a Unix socket. Only the namespaces of ``access`` apply."""

    dialect: Dialect
    path: Path
    access: Access = DEFAULT_ACCESS


class IpcServer:
    """The connections of one Unix socket."""

    def __init__(self, dispatcher: Dispatcher, path: Path, turns: Turns) -> None:
        limits = dispatcher.context.limits
        self.turns = turns
        self.dispatcher, self.path, self.limits = dispatcher, path, limits
        self.metrics = dispatcher.metrics
        self.traffic = dispatcher.context.traffic
        self._channels: dict[IpcChannel, asyncio.Task[None]] = {}
        self._server: asyncio.Server | None = None
        self._inode = 0

    async def open(self) -> None:
        """Listen. OSError says why the file cannot be."""
        try:
            bound = bind(self.path)
        except OSError as error:
            raise OSError(f"--ipc {self.path}: {error.strerror or error}") from None
        self._inode = self.path.stat().st_ino
        self._server = await asyncio.start_unix_server(self._accept, sock=bound)

    async def close(self) -> None:
        """Take no more connections, let open requests end, remove the file."""
        if self._server is not None:
            self._server.close()
        for channel in self._channels:
            channel.end()
        if self._channels:
            await asyncio.wait(self._channels.values())
        with suppress(OSError):
            if self.path.stat().st_ino == self._inode:  # it is not another node's by now
                self.path.unlink()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = IpcChannel(self, reader, writer)
        if len(self._channels) >= self.limits.sockets:
            self.metrics.add("sockets_refused_total")
            channel.refuse(f"too many connections, limit {self.limits.sockets}")
            writer.close()
            return
        self.metrics.add("sockets_total")
        session = Session(
            self.dispatcher,
            self.dispatcher.context.hub,
            channel,
            CLIENT,
            self.turns.share_of(CLIENT),
        )
        session.connection = channel
        task = asyncio.current_task()
        assert task is not None
        self._channels[channel] = task
        try:
            await session.run()
        finally:
            del self._channels[channel]
            channel.holding.close()
            if session.cut_off:
                writer.transport.abort()
            writer.close()


class IpcChannel:
    """A connection, and the memory of its messages in progress."""

    listens_on = True  # as programs do that close their end behind their last request

    def __init__(
        self, server: IpcServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.holding = server.traffic.holding(CLIENT, self.end_over_budget)
        self.held = 0  # bytes of memory of messages without an answer

    async def messages(self) -> AsyncIterator[bytes]:
        """Cut the stream into messages. Invalid data gets an error and ends the connection."""
        limits = self.server.limits
        stream = JsonStream(limits.body_size)
        while True:
            try:
                async with asyncio.timeout(limits.arrival_time if stream.unfinished else None):
                    data = await self.reader.read(READ_SIZE)
                if not data:
                    return
                for message in stream.feed(data):
                    yield message
            except (StreamFault, TimeoutError) as fault:
                self.refuse(str(fault) or "the message did not arrive in time")
                return
            except ConnectionError:
                return

    def end(self) -> None:
        """Read no more, as if the client had said all."""
        if not self.writer.is_closing():
            self.writer.transport.pause_reading()  # type: ignore[attr-defined]
        self.reader.feed_eof()

    async def send(self, frame: Frame) -> None:
        """Send one message as a line."""
        self.writer.writelines((*frame, LINE_END))
        await self.writer.drain()

    def refuse(self, fault: str) -> None:
        """Send the client an error about its message."""
        error = RpcError("stream_fault", fault=fault)
        answer = encode_error(b"null", wire_error(error, self.server.dispatcher.context.dialect))
        self.writer.writelines((answer, LINE_END))

    def message_began(self, message: bytes) -> int:
        """Count the memory of a message; beyond the budget, connections end."""
        memory = memory_of(message)
        self.held += memory
        self.holding.hold(self.held)
        return memory

    def message_ended(self, memory: int) -> None:
        """Give the memory of a message back."""
        self.held -= memory
        self.holding.hold(self.held)

    def end_over_budget(self) -> None:
        """End, since all connections hold too much and this one holds most."""
        self.server.metrics.add("connections_over_budget_total")
        self.writer.transport.abort()


def bind(path: Path) -> socket.socket:
    """A socket of that file, which only its owner may open; the file of a node that ended goes.

    OSError: another program listens there, or it cannot be made.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, "this platform has no Unix sockets")
    if path.is_socket():
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.settimeout(PROBE_SECONDS)
            if probe.connect_ex(str(path)) != errno.ECONNREFUSED:
                raise OSError(errno.EADDRINUSE, "another program listens there")
        path.unlink()
    elif path.exists():
        raise OSError(errno.EEXIST, "a file that is no socket is there")
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(str(path))
        path.chmod(OWNER_ONLY)  # nobody can connect before it listens
    except OSError:
        made.close()
        raise
    return made
