"""The short way of an HTTP connection: plain JSON-RPC POSTs are read and answered right here.

A request is plain when its head has only the members that client libraries send: a length, a JSON
type, no encodings, upgrades or expectations. Anything else (and anything wrong) is the business of
the whole HTTP server behind, which gets the connection with what has come so far, and keeps it. So
there is one place for each rule, and this one only leaves out work.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from email.utils import formatdate
from typing import Any, Final, NamedTuple

REQUEST_LINE: Final = b"POST / HTTP/1.1\r\n"
HEAD_END: Final = b"\r\n\r\n"
HEAD_LIMIT: Final = 2_048  # bytes; a longer head is not plain
KNOWN_HEADS: Final = 1_024  # heads that are remembered; then they are learned anew
AHEAD_LIMIT: Final = 1 << 20  # bytes read beyond the request in progress; then reading pauses
LARGE: Final = 16_384  # bytes of an answer
LINGER: Final = 30.0  # seconds that a request may take to arrive
LOOP_TIME: Final = 0.002  # seconds of one connection's requests until others get their turn
SWEEP: Final = 5.0  # seconds between looks for connections that are silent

# Members of a head that change nothing here.
HARMLESS: Final = frozenset((b"host", b"accept", b"accept-encoding", b"accept-language",
                             b"user-agent"))  # fmt: skip


class Head(NamedTuple):
    """What a plain head says: bytes of it and of the body."""

    size: int
    length: int


class HttpListener:
    """What the connections of one listener share.

    ``respond``: from a body to its answer, or to what is awaited for it. ``fallback`` makes the
    protocol of the server behind. ``types``: content types of plain requests, lower case.
    ``headers``: lines that every answer has. ``body_limit`` in bytes, ``keepalive`` in seconds.
    """

    def __init__(
        self,
        respond: Callable[[bytes], bytes | Coroutine[Any, Any, bytes] | asyncio.Future[bytes]],
        fallback: Callable[[], asyncio.BaseProtocol],
        *,
        types: frozenset[str],
        headers: dict[str, str],
        body_limit: int,
        keepalive: float,
    ) -> None:
        self.respond = respond
        self.fallback = fallback
        self.types = frozenset(name.encode() for name in types)
        self.body_limit = body_limit
        self.keepalive = keepalive
        self.connections: set[Connection] = set()
        self._known: dict[bytes, Head | None] = {}
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        self._lines = "".join(lines).encode()
        self._second = 0
        self._start = b""
        self._sweeper: asyncio.TimerHandle | None = None

    def connection(self) -> "Connection":
        """Return the protocol of a new connection."""
        if self._sweeper is None:
            self._sweep(asyncio.get_running_loop())
        return Connection(self)

    def head_of(self, data: bytes) -> Head | None:
        """Return what the head at the beginning of ``data`` says; None if it is not plain."""
        end = data.find(HEAD_END, 0, HEAD_LIMIT)
        head = data[:end] if end >= 0 else b""
        try:
            return self._known[head]
        except KeyError:
            found = self._read(head)
        if len(self._known) >= KNOWN_HEADS:
            self._known.clear()
        self._known[head] = found
        return found

    def head(self, length: int) -> bytes:
        """Return the head of an answer whose body has so many bytes."""
        now = int(time.time())
        if now != self._second:
            self._second = now
            date = formatdate(now, usegmt=True).encode()
            self._start = b"HTTP/1.1 200 OK\r\n%bDate: %b\r\nContent-Length: " % (self._lines, date)
        return b"%b%d\r\n\r\n" % (self._start, length)

    async def close(self, seconds: float) -> None:
        """End the connections: idle ones at once, the others after their answer or ``seconds``."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self.connections):
            connection.leave()
        tasks = [c.task for c in self.connections if c.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        for connection in tuple(self.connections):
            connection.abort()

    def _read(self, head: bytes) -> Head | None:
        if not head.startswith(REQUEST_LINE):
            return None
        length = kind = None
        seen = set()
        for line in head[len(REQUEST_LINE) :].split(b"\r\n"):
            name, colon, value = line.partition(b":")
            name, value = name.lower(), value.strip(b" \t")
            if not colon or name in seen:
                return None
            seen.add(name)
            if name == b"content-length":
                length = int(value) if value.isdigit() else None
            elif name == b"content-type":
                kind = value.partition(b";")[0].strip().lower()
            elif name == b"connection":
                if value.lower() != b"keep-alive":
                    return None
            elif name not in HARMLESS:
                return None
        if length is None or length > self.body_limit or kind not in self.types:
            return None
        return Head(len(head) + len(HEAD_END), length) if b"host" in seen else None

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in tuple(self.connections):
            connection.end_silence(now, self.keepalive)
        self._sweeper = loop.call_later(SWEEP, self._sweep, loop)


class Connection(asyncio.Protocol):
    """One connection, until it is handed over."""

    __slots__ = (
        "closing",
        "data",
        "heard",
        "is_ahead",
        "is_due",
        "listener",
        "loop",
        "missing",
        "paused",
        "task",
        "transport",
    )  # fmt: skip

    def __init__(self, listener: HttpListener) -> None:
        self.listener = listener
        self.loop = asyncio.get_running_loop()
        self.transport: Any = None
        self.data: bytes | bytearray = b""  # not yet answered
        self.missing = 0  # bytes without which there is no whole request
        self.task: asyncio.Future[bytes] | None = None  # of the request in progress
        self.paused = False  # the client takes no answers at the moment
        self.is_due = False  # `go_on` will be called by the loop
        self.is_ahead = False  # too much has come: nothing more is read until it is answered
        self.closing = False
        self.heard = self.loop.time()

    # --- called by the loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self.transport = transport
        self.listener.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """End; what is done for the client stops. (One that has ended its side has left.)"""
        self.data = b""
        self.listener.connections.discard(self)
        self.closing = True
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        if not self.data:
            self.data = data
        else:
            if type(self.data) is bytes:
                self.data = bytearray(self.data)
            self.data += data
        if self.task is not None or self.paused or self.is_due:
            if len(self.data) > AHEAD_LIMIT and not self.is_ahead:
                self.is_ahead = True
                self.transport.pause_reading()
        elif len(self.data) >= self.missing:
            self.go_on()

    def pause_writing(self) -> None:
        """Answer no more until the client has taken what there is."""
        self.paused = True

    def resume_writing(self) -> None:
        """Go on."""
        self.paused = False
        if self.task is None and not self.is_due:
            self.go_on()

    # --- requests ---

    def go_on(self) -> None:
        """Answer the requests that have come, until one takes longer or others want their turn."""
        listener, until = self.listener, self.loop.time() + LOOP_TIME
        self.is_due = False
        while self.data and not self.paused:
            data = bytes(self.data)
            head = listener.head_of(data)
            if head is None:
                self.hand_over(data)
                return
            end = head.size + head.length
            if len(data) < end:
                self.missing = end
                break
            self.missing = 0
            self.data = data[end:]
            answer = listener.respond(data[head.size : end])
            if not isinstance(answer, bytes):
                self.task = asyncio.ensure_future(answer, loop=self.loop)
                self.task.add_done_callback(self.answered)
                return
            self.send(answer)
            if self.data and self.loop.time() > until:
                self.is_due = True
                self.loop.call_soon(self.go_on)
                return
        self.heard = self.loop.time()
        if self.is_ahead and not self.paused:
            self.is_ahead = False
            self.transport.resume_reading()

    def answered(self, task: "asyncio.Future[bytes]") -> None:
        """Send the answer of a request that took longer, and turn to the next one."""
        self.task = None
        if task.cancelled() or self.transport.is_closing():
            return
        if task.exception() is not None:
            self.loop.call_exception_handler(
                {"message": "a request got no answer", "exception": task.exception()}
            )
            self.transport.abort()
            return
        self.send(task.result())
        if self.closing:
            self.transport.close()
            return
        if not self.paused:
            self.go_on()

    def send(self, body: bytes) -> None:
        """Send an answer; a large one is not copied behind its head."""
        head = self.listener.head(len(body))
        if len(body) < LARGE:
            self.transport.write(head + body)
        else:
            self.transport.writelines((head, body))

    def hand_over(self, data: bytes) -> None:
        """Let the server behind have the connection."""
        self.listener.connections.discard(self)
        if self.is_ahead:
            self.transport.resume_reading()
        protocol: Any = self.listener.fallback()
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        protocol.data_received(data)

    # --- the end ---

    def end_silence(self, now: float, keepalive: float) -> None:
        """Close if nothing is in progress and nothing came for too long."""
        limit = LINGER if self.data else keepalive
        if self.task is None and now - self.heard > limit:
            self.transport.close()

    def leave(self) -> None:
        """Close, after the answer to the request in progress."""
        self.closing = True
        if self.task is None:
            self.transport.close()

    def abort(self) -> None:
        """Close without waiting."""
        if self.task is not None:
            self.task.cancel()
        self.transport.abort()
