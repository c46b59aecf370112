"""JSON-RPC over a Unix socket (IPC), as in geth and anvil.

Messages are a sequence of JSON objects and arrays. Each answer and notification ends with a line
feed. Only the user that started the node may open the socket file, so the server does not check
Host names, origins and keys as it does over HTTP.
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Sequence
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

READ_SIZE: Final = 1 << 18  # most bytes of one read
OWNER_ONLY: Final = 0o600
# `bind` connects to an existing file to test whether a program listens on it: timeout in seconds
PROBE_SECONDS: Final = 1.0
# stands for the client's IP address in the per-client limits, because all IPC clients share one
# limit
CLIENT: Final = "ipc"
LINE_END: Final = b"\n"


class IpcListener(Struct, frozen=True):
    """The dialect and path of a Unix socket. Of ``access``, only the namespaces apply."""

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
        """Start listening. Raises OSError with the path if that fails."""
        try:
            bound = bind(self.path)
        except OSError as error:
            raise OSError(f"--ipc {self.path}: {error.strerror or error}") from None
        self._inode = self.path.stat().st_ino
        self._server = await asyncio.start_unix_server(self._accept, sock=bound)

    async def close(self) -> None:
        """Stop accepting connections, let open requests finish, remove the file."""
        if self._server is not None:
            self._server.close()
        for channel in self._channels:
            channel.end()
        if self._channels:
            await asyncio.wait(self._channels.values())
        with suppress(OSError):
            if self.path.stat().st_ino == self._inode:  # the file is still this server's
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

    listens_on = True  # programs may close their sending side after the last request

    def __init__(
        self, server: IpcServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server, self.reader, self.writer = server, reader, writer
        self.holding = server.traffic.holding(CLIENT, self.end_over_budget)
        self.held = 0  # bytes of memory of messages without an answer

    async def messages(self) -> AsyncIterator[bytes]:
        """Split the stream into messages. Invalid data gets an error and ends the connection."""
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
        """Stop reading, as if the client had closed its sending side."""
        if not self.writer.is_closing():
            self.writer.transport.pause_reading()  # type: ignore[attr-defined]
        self.reader.feed_eof()

    async def send(self, frames: Sequence[Frame]) -> None:
        """Send each message as a line."""
        self.writer.writelines([part for frame in frames for part in (*frame, LINE_END)])
        await self.writer.drain()

    def refuse(self, fault: str) -> None:
        """Send the client an error about its message."""
        error = RpcError("stream_fault", fault=fault)
        answer = encode_error(b"null", wire_error(error, self.server.dispatcher.context.dialect))
        self.writer.writelines((answer, LINE_END))

    def message_began(self, message: bytes) -> int:
        """Count a message's memory. If this exceeds the traffic budget, connections are aborted."""
        memory = memory_of(message)
        self.held += memory
        self.holding.hold(self.held)
        return memory

    def message_ended(self, memory: int) -> None:
        """Release the memory of a message that has been answered."""
        self.held -= memory
        self.holding.hold(self.held)

    def end_over_budget(self) -> None:
        """Abort, because the traffic budget is exceeded and IPC clients use the most memory."""
        self.server.metrics.add("connections_over_budget_total")
        self.writer.transport.abort()


def bind(path: Path) -> socket.socket:
    """Bind a socket to a file that only its owner may open. Replaces the file of an ended node.

    Raises OSError if another program listens on the file, or the file cannot be created.
    """
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, "this platform has no Unix sockets")
    if path.is_socket():
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            probe.settimeout(PROBE_SECONDS)
            if probe.connect_ex(str(path)) != errno.ECONNREFUSED:
                raise OSError(errno.EADDRINUSE, "another program listens on this path")
        path.unlink()
    elif path.exists():
        raise OSError(errno.EEXIST, "the path exists and is not a socket")
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(str(path))
        path.chmod(OWNER_ONLY)  # done before listening, so nobody can connect yet
    except OSError:
        made.close()
        raise
    return made
