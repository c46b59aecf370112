"""HTTP connections of a listener. Answers JSON-RPC POSTs; aiohttp answers other requests.

A request takes the fast path if its head contains only the headers that client libraries send: a
length, a JSON type, no encodings, upgrades or expectations, and an allowed Host. At the first
request with another head, the connection is delegated to aiohttp's protocol, so that no rule of
HTTP is implemented twice. This module enforces the limits and timeouts of a connection in both
cases.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, Final, NamedTuple

from fastevm.rpc.dispatch.dispatcher import Answering
from fastevm.rpc.dispatch.long_answer import PIECE, Answer, answer_memory, pieces_of
from fastevm.rpc.limits import VALUES_LIMIT, Limits
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.traffic import Holding, TrafficBudget
from fastevm.rpc.transport.access import Access, client_of
from fastevm.rpc.transport.frame_clock import FrameClock, TooManyFrames
from fastevm.rpc.transport.turns import LoopShare, Turns
from fastevm.rpc_types.text.json_size import measure

REQUEST_LINE: Final = b"POST / HTTP/1.1\r\n"
HEAD_END: Final = b"\r\n\r\n"
HEAD_LIMIT: Final = 2_048  # bytes; a longer head does not take the fast path
KNOWN_HEADS: Final = 1_024  # cached request heads; a full cache is cleared
# bytes received beyond the request in progress, above which reading pauses
AHEAD_LIMIT: Final = 1 << 20
# answers of at least this many bytes are written without copying them behind their head
LARGE: Final = 16_384
LOOP_TIME: Final = 0.002  # seconds of one connection's requests before the loop serves others
EARLY_LIMIT: Final = 65_536  # bytes that may arrive before the answer to a WebSocket upgrade
SOCKET_METHOD: Final = b"GET "  # start of a WebSocket upgrade request
SWEEP: Final = 5.0  # seconds between checks of connection timeouts
COPIES: Final = 3  # copies of a request's text in memory: as received, extracted, and decoded
PAGE_COPIES: Final = 2  # copies in memory of a body that aiohttp reads
VALUE_SIZE: Final = 100  # bytes of memory of a decoded JSON value; an upper bound of the average
SLOWEST_READER: Final = 16_384  # bytes per second that a client must read of its answer

# Names in an HTTP date, English in every locale (RFC 9110, 5.6.7).
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

# Headers that have no effect here.
HARMLESS: Final = frozenset((
    b"host", b"accept", b"accept-encoding", b"accept-language", b"user-agent", b"x-forwarded-host",
    b"x-forwarded-proto", b"sec-fetch-mode",
))  # fmt: skip

# Header lines: a name of token characters, a value of visible characters, spaces and tabs. Lines
# that parsers interpret differently (bare CR, LF or NUL, folded lines) go to aiohttp.
LINES: Final = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e]*(?:\r\n|\Z))*")


def http_date(seconds: int) -> bytes:
    """Format Unix seconds as an HTTP date. The import of `email.utils` would take 4 ms."""
    t = time.gmtime(seconds)
    day = f"{DAYS[t.tm_wday]}, {t.tm_mday:02} {MONTHS[t.tm_mon - 1]} {t.tm_year:04}"
    return f"{day} {t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02} GMT".encode()


class Head(NamedTuple):
    """The parsed head of a request on the fast path, with the sizes of head and body in bytes.

    ``forwarded`` is the X-Forwarded-For header, None if the request has none.
    """

    size: int
    length: int
    forwarded: str | None


class HttpListener:
    """The state that the connections of one listener share.

    ``respond(body, client)`` returns the answer or an awaitable that returns it. ``after_answer()``
    is called when the answer was sent or its task has started. ``delegate(connection, data)``
    passes a connection that leaves the fast path to aiohttp, with the received bytes ``data``.
    ``access`` has the access rules, ``types`` the content types of the fast path in lower case,
    ``headers`` the headers of every answer. ``keepalive`` is in seconds. ``turns`` divides the time
    of the loop between clients, ``traffic`` limits the memory of requests and answers in progress.
    """

    def __init__(
        self,
        respond: Callable[[bytes, str], bytes | Answering],
        delegate: Callable[["Connection", bytes], None],
        *,
        access: Access,
        types: frozenset[str],
        headers: dict[str, str],
        limits: Limits,
        metrics: Metrics,
        keepalive: float,
        after_answer: Callable[[], None] = lambda: None,
        turns: Turns | None = None,
        traffic: TrafficBudget | None = None,
    ) -> None:
        self.respond, self.after_answer = respond, after_answer
        self.delegate = delegate
        self.allows_host, self.client, self.proxies = (
            access.allows_host, access.client, access.proxies,
        )  # fmt: skip
        self.types = frozenset(name.encode() for name in types)
        self.limits = limits
        self.metrics = metrics
        self.keepalive = keepalive
        self.turns = turns or Turns()
        self.traffic = traffic or TrafficBudget(limits.traffic_size)
        self.connections: set[Connection] = set()
        self._by_client: Counter[str] = Counter()
        self._known: dict[bytes, Head | None] = {}
        lines = [f"{name}: {value}\r\n" for name, value in headers.items()]
        self._lines = "".join(lines).encode()
        self._heard = 0.0  # latest activity of connections that have ended
        self._second = 0
        self._start = b""
        self._sweeper: asyncio.TimerHandle | None = None

    def connection(self) -> "Connection":
        """Return the protocol of a new connection."""
        if self._sweeper is None:
            self._sweep(asyncio.get_running_loop())
        return Connection(self)

    @property
    def held(self) -> int:
        """The bytes of memory of all requests that are not answered yet."""
        return sum(connection.held for connection in self.connections)

    @property
    def unread(self) -> int:
        """The bytes of memory of all answers that clients have not read yet."""
        return sum(connection.unread for connection in self.connections)

    def share_of(self, connection: "Connection") -> LoopShare:
        """Return the loop share of a connection.

        All connections of a client share one object, but each connection of a trusted proxy has its
        own, because it may serve a different client.
        """
        if connection.address in self.proxies:
            return LoopShare(self.turns)
        return self.turns.share_of(connection.client)

    def heard(self) -> float:
        """The time of the last request or answer, in seconds of the loop's clock."""
        now = asyncio.get_running_loop().time()
        times = (now if connection.task else connection.heard for connection in self.connections)
        return max([self._heard, *times])

    def admit(self, connection: "Connection") -> bool:
        """Count a new connection. Returns False if the client or the listener has too many."""
        client = connection.client
        if len(self.connections) >= self.limits.connections or (
            self._by_client[client] >= self.limits.address_connections
            and connection.address not in self.proxies
        ):
            self.metrics.add("connections_refused_total")
            return False
        self.connections.add(connection)
        self._by_client[client] += 1
        return True

    def forget(self, connection: "Connection") -> None:
        """Stop counting a connection and its memory."""
        connection.held = connection.unread = 0
        connection.holding.close()
        if connection in self.connections:
            self._heard = max(self._heard, connection.heard)
            self.connections.discard(connection)
            self._by_client[connection.client] -= 1
            if not self._by_client[connection.client]:
                del self._by_client[connection.client]

    def head_of(self, data: bytes | bytearray, start: int = 0) -> Head | None:
        """Return the parsed head at ``start`` of ``data``; None if it needs aiohttp."""
        end = data.find(HEAD_END, start, start + HEAD_LIMIT)
        head = bytes(data[start:end]) if end >= 0 else b""
        try:
            return self._known[head]
        except KeyError:
            found = self._read(head)
        if len(self._known) >= KNOWN_HEADS:
            self._known.clear()
        self._known[head] = found
        return found

    def head(self, length: int) -> bytes:
        """Return the head of an answer whose body has ``length`` bytes."""
        now = int(time.time())
        if now != self._second:
            self._second = now
            date = http_date(now)
            self._start = b"HTTP/1.1 200 OK\r\n%bDate: %b\r\nContent-Length: " % (self._lines, date)
        return b"%b%d\r\n\r\n" % (self._start, length)

    async def close(self, seconds: float) -> None:
        """Close idle connections now, and other connections after the answer or ``seconds``."""
        for connection in tuple(self.connections):
            connection.leave()
        tasks = [c.task for c in self.connections if c.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def abort(self) -> None:
        """Abort the remaining connections."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self.connections):
            connection.abort()

    def _read(self, head: bytes) -> Head | None:
        if not head.startswith(REQUEST_LINE) or not LINES.fullmatch(head, len(REQUEST_LINE)):
            return None
        length = kind = host = forwarded = None
        seen = set()
        for line in head[len(REQUEST_LINE) :].split(b"\r\n"):
            name, _, value = line.partition(b":")
            name, value = name.lower(), value.strip(b" \t")
            if name in seen:
                return None
            seen.add(name)
            if name == b"content-length":
                length = int(value) if value.isdigit() and len(value) < 20 else None
            elif name == b"content-type":
                kind = value.partition(b";")[0].strip().lower()
            elif name == b"connection":
                if value.lower() != b"keep-alive":
                    return None
            elif name == b"host":
                host = value.decode()
            elif name == b"x-forwarded-for":
                forwarded = value.decode()
            elif name not in HARMLESS:
                return None
        if length is None or length > self.limits.body_size or kind not in self.types:
            return None
        if not host or not self.allows_host(host):
            return None
        return Head(len(head) + len(HEAD_END), length, forwarded)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for connection in tuple(self.connections):
            connection.check_clocks(now)
        self._sweeper = loop.call_later(SWEEP, self._sweep, loop)


def memory_of(body: bytes) -> int:
    """Return the maximum bytes of memory of an unanswered request, without the answer."""
    _, values, _ = measure(body, items=VALUES_LIMIT, values=VALUES_LIMIT)
    return COPIES * len(body) + VALUE_SIZE * values


def is_start_of_head(data: bytes | bytearray, start: int) -> bool:
    """Return whether the data from ``start`` on may become a head of the fast path."""
    if len(data) - start >= HEAD_LIMIT or data.find(HEAD_END, start) >= 0:
        return False
    return REQUEST_LINE.startswith(bytes(data[start : start + len(REQUEST_LINE)]))


class Connection(asyncio.Protocol):
    """A client's connection, from the first byte to the last."""

    __slots__ = ("address", "began", "buffered", "client", "closing", "data", "delegate", "early",
                 "frames", "heard", "held", "holding", "is_ahead", "is_due", "is_serving",
                 "listener", "loop", "missing", "paused", "paused_at", "position", "rest",
                 "rest_size", "served", "share", "taken", "task", "transport", "unread",
                 "working")  # fmt: skip

    def __init__(self, listener: HttpListener) -> None:
        self.listener = listener
        self.loop = asyncio.get_running_loop()
        self.transport: Any = None
        self.share: LoopShare
        self.address = self.client = ""
        self.data: bytes | bytearray = b""  # received bytes; those before `position` are answered
        self.position = 0
        self.missing = 0  # length of data at which the next request is complete
        self.task: asyncio.Future[Any] | None = None  # answers the request in progress
        # Pieces of an answer that wait until the client reads, and the bytes of memory that they
        # use.
        self.rest: Iterator[bytes | memoryview] | None = None
        self.rest_size = 0
        self.paused = False  # the client does not read its answers
        self.is_due = False  # `go_on` is scheduled on the loop
        # reading is paused, because too many bytes came after the request in progress
        self.is_ahead = False
        self.closing = False
        self.holding: Holding
        self.held = 0  # bytes of memory of its requests
        self.unread = 0  # bytes of its answers while the client does not read
        self.working = 0  # the part of `held` for requests or WebSocket messages in progress
        # --- after the connection has left the fast path ---
        self.delegate: Any = None  # the protocol that receives the bytes
        self.is_serving = False  # the delegate has a complete head and answers the request
        self.frames: FrameClock | None = None  # set if the connection is a WebSocket
        self.taken = 0  # bytes of WebSocket messages that were passed on for processing
        # bytes of the request in progress, in case it is a WebSocket upgrade
        self.early = bytearray()
        # --- timeouts ---
        self.heard = self.loop.time()  # when the last request was answered
        self.served = False  # whether a request was answered
        self.began: float | None = None  # when the first byte of the incomplete request came
        self.paused_at = 0.0
        self.buffered = 0  # bytes in the write buffer at `paused_at`; see `_check_reading`

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start, unless there are too many connections."""
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        self.client = client_of(self.address)
        self.share = self.listener.share_of(self)
        self.holding = self.listener.traffic.holding(self.client, self.end_over_budget)
        if not self.listener.admit(self):
            self.closing = True
            self.transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the work for the client, even if it has only closed its sending side."""
        self.data, self.rest, self.rest_size = b"", None, 0
        self.listener.forget(self)
        self.closing = True
        if self.task is not None:
            self.task.cancel()
        if self.delegate is not None:
            self.delegate.connection_lost(error)

    def eof_received(self) -> bool | None:
        """Handle that the client has closed its sending side."""
        if self.delegate is None:
            return None
        keeps_open: bool | None = self.delegate.eof_received()
        return keeps_open

    def data_received(self, data: bytes) -> None:
        """Answer the requests that are complete."""
        if self.closing:
            return
        if self.delegate is not None:
            self.delegate_data(data)
            return
        if self.position == len(self.data):
            self.data, self.position, self.missing = data, 0, 0
        else:
            if type(self.data) is bytes:
                self.data = bytearray(self.data)
            if self.position:
                del self.data[: self.position]  # type: ignore[union-attr]
                self.missing = max(self.missing - self.position, 0)
                self.position = 0
            self.data += data
        if self.task is not None or self.paused or self.is_due:
            if len(self.data) > AHEAD_LIMIT and not self.is_ahead:
                self.is_ahead = True
                self.transport.pause_reading()
            self.hold()
        elif len(self.data) >= self.missing:
            self.take_turn()
        else:
            self.hold()

    def pause_writing(self) -> None:
        """Stop answering until the client has read the previous answers."""
        self.paused = True
        self.paused_at, self.buffered = self.loop.time(), self.transport.get_write_buffer_size()
        if self.delegate is not None:
            self.delegate.pause_writing()
        self.unread = self.unsent()
        self.holding.hold(self.held, self.unread)

    def resume_writing(self) -> None:
        """Continue answering."""
        self.paused = False
        self.unread = 0
        self.holding.hold(self.held)
        if self.delegate is not None:
            self.delegate.resume_writing()
            return
        if self.rest is not None:
            self.send_rest()
        if self.paused or self.task is not None or self.is_due:
            return
        if self.closing:
            self.transport.close()
        else:
            self.take_turn()

    # --- requests on the fast path ---

    def take_turn(self) -> None:
        """Answer requests, or postpone them if the client has used up its share of the loop."""
        share = self.share
        if share.is_over:
            self.is_due = True
            self.hold()
            share.defer(self.go_on)
            return
        began = perf_counter()
        self.go_on()
        share.charge(began, perf_counter())

    def go_on(self) -> None:
        """Answer received requests, until one needs a task or other clients must be served."""
        listener, until = self.listener, 0.0
        self.is_due = False
        while self.position < len(self.data) and not self.paused and not self.closing:
            data, start = self.data, self.position
            head = listener.head_of(data, start)
            if head is None:
                if is_start_of_head(data, start):
                    break
                self.leave_fast_path()
                return
            body = start + head.size
            end = body + head.length
            if len(data) < end:
                self.missing = end
                break
            self.missing = 0
            self.position = end
            request = bytes(data[body:end])
            client = self.client
            if head.forwarded is not None:
                client = listener.client(self.address, head.forwarded)
            answer = listener.respond(request, client)
            if not isinstance(answer, bytes):
                del data
                self.wait_for(answer, request)
                return
            self.send(answer)
            listener.after_answer()
            if self.position < len(self.data) and self.loop.time() > until:
                if until:
                    self.is_due = True
                    self.loop.call_soon(self.go_on)
                    return
                until = self.loop.time() + LOOP_TIME  # a single request needs no time limit
        self.set_clocks()
        if self.is_ahead and not self.paused:
            self.is_ahead = False
            self.transport.resume_reading()

    def wait_for(self, answer: Answering, request: bytes) -> None:
        """Send the answer when it is ready. Until then no other request is answered."""
        self.began = None
        self.task = asyncio.ensure_future(answer, loop=self.loop)
        self.task.add_done_callback(self.answered)
        if self.position == len(self.data):
            self.data, self.position = b"", 0  # the worker has its own copy of the request
        self.working = memory_of(request)
        self.hold()
        self.listener.after_answer()

    def answered(self, task: "asyncio.Future[bytes]") -> None:
        """Send the answer of a request that took longer, and continue with the next request."""
        self.task, self.working = None, 0
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
            if self.rest is None:
                self.transport.close()
            return
        if not self.paused:
            self.take_turn()

    def send(self, body: Answer) -> None:
        """Send an answer. A large answer is not joined with its head, but written in pieces."""
        self.served = True
        size = len(body)
        head = self.listener.head(size)
        if size < LARGE and type(body) is bytes:
            self.transport.write(head + body)
        elif size > PIECE or not isinstance(body, bytes):
            self.transport.write(head)
            self.rest = pieces_of(body)
            self.rest_size = answer_memory(body)
            self.send_rest()
        else:
            self.transport.writelines((head, body))

    def send_rest(self) -> None:
        """Write the remaining pieces, as many as the transport accepts."""
        while self.rest is not None and not self.paused:
            try:
                piece = next(self.rest, None)
            except OSError as error:  # the file of the answer cannot be read
                self.loop.call_exception_handler(
                    {"message": "an answer could not be read", "exception": error}
                )
                self.abort()
                return
            if piece is None:
                self.rest, self.rest_size = None, 0
            else:
                if isinstance(piece, memoryview):  # pieces in memory, not in a file
                    self.rest_size -= len(piece)
                self.transport.write(piece)

    def unsent(self) -> int:
        """Return the bytes of memory of the answer that the client has not read yet."""
        return int(self.transport.get_write_buffer_size()) + self.rest_size

    # --- after the fast path ---

    def leave_fast_path(self) -> None:
        """Pass received and future bytes to aiohttp."""
        data = bytes(self.data[self.position :])
        self.data, self.position = b"", 0
        if self.is_ahead:
            self.is_ahead = False
            self.transport.resume_reading()
        self.heard, self.began = self.loop.time(), None
        self.listener.delegate(self, data)

    def delegate_to(self, protocol: Any, data: bytes) -> None:
        """Pass all bytes to ``protocol``, first ``data``, which has already been received."""
        self.delegate = protocol
        # the received bytes are counted again when they are passed on
        self.began, self.early = None, bytearray()
        self.hold_requests(0)
        protocol.connection_made(self.transport)
        if self.paused:
            protocol.pause_writing()
        if data:
            self.pass_on(data)

    def delegate_data(self, data: bytes) -> None:
        """Pass bytes to the delegate, or postpone them if the client is over its share."""
        share = self.share
        if not share.is_over and not self.data:
            began = perf_counter()
            self.pass_on(data)
            share.charge(began, perf_counter())
            return
        if not self.data:
            self.transport.pause_reading()
            share.defer(self.pass_on_waiting)
        self.data += data

    def pass_on_waiting(self) -> None:
        """Pass on the postponed bytes, and resume reading."""
        data, self.data = bytes(self.data), b""
        if self.closing or self.transport.is_closing():
            return
        # before `pass_on`, because the delegate may pause reading again
        self.transport.resume_reading()
        self.pass_on(data)

    def pass_on(self, data: bytes) -> None:
        """Pass bytes to the delegate, and start the timeout of an incomplete request."""
        if self.frames is not None:
            if not self.follow_frames(data):
                return
        else:
            self.hold_requests(self.held + PAGE_COPIES * len(data))
            if not self.is_serving and self.began is None:
                self.began = self.loop.time()
                self.early = bytearray()
            if len(self.early) < EARLY_LIMIT:
                self.early += data[:EARLY_LIMIT]
        self.delegate.data_received(data)

    def request_began(self) -> None:
        """Record that aiohttp has received a complete head."""
        self.is_serving, self.began = True, None

    def request_came(self, body: bytes) -> None:
        """Record that the delegate has received the complete body."""
        self.hold_requests(memory_of(body))

    def request_ended(self) -> None:
        """Record that the delegate has answered."""
        self.early = bytearray()
        self.hold_requests(0)
        self.is_serving, self.served, self.heard = False, True, self.loop.time()

    def may_become_socket(self) -> bool:
        """Return whether it is known where the first WebSocket frame begins.

        It is unknown if the request was pipelined after other requests, or if too many bytes came
        before the answer to the upgrade.
        """
        return self.early.startswith(SOCKET_METHOD) and len(self.early) < EARLY_LIMIT

    def becomes_socket(self) -> None:
        """Treat all bytes after the head of the request as WebSocket frames."""
        self.frames = FrameClock()
        self.follow_frames(bytes(self.early.partition(HEAD_END)[2]))
        self.early = bytearray()

    def follow_frames(self, data: bytes) -> bool:
        """Count WebSocket frames. Returns False if there are too many and the connection ends."""
        assert self.frames is not None
        try:
            self.frames.feed(data, self.loop.time())
        except TooManyFrames:
            self.listener.metrics.add("connections_over_budget_total")
            self.abort()
            return False
        self.hold()
        return True

    def message_began(self, message: bytes) -> int:
        """Count a WebSocket message in progress. Returns the memory to pass to `message_ended`."""
        memory = memory_of(message)
        self.working += memory
        self.message_taken(message)
        return memory

    def message_taken(self, message: bytes) -> None:
        """Record that a WebSocket message was passed on for processing."""
        self.taken += len(message)
        self.hold()

    def message_ended(self, memory: int) -> None:
        """Release the memory of a WebSocket message that has been answered."""
        self.working -= memory
        self.hold()

    # --- memory ---

    def hold(self) -> None:
        """Count the memory of received bytes that are not answered."""
        if self.closing:
            return
        waiting = len(self.data) - self.position
        if self.frames is not None:
            waiting += self.frames.memory - self.taken
        self.hold_requests(self.working + waiting)

    def hold_requests(self, size: int) -> None:
        """Count the memory of requests, unless the connection ends."""
        self.held = 0 if self.closing else size
        self.holding.hold(self.held, self.unread)

    def end_over_budget(self) -> None:
        """Abort the connection, because all connections together exceed the traffic budget.

        This one is the largest of the client that uses the most memory.
        """
        self.held = self.unread = 0
        self.listener.metrics.add("connections_over_budget_total")
        self.abort()

    # --- timeouts and closing ---

    def set_clocks(self) -> None:
        """Record whether a request is incomplete, and since when."""
        now = self.loop.time()
        if self.position == len(self.data):
            self.data, self.position = b"", 0  # answered
            self.heard, self.began = now, None
            if not self.held:
                return
        elif self.began is None:
            self.began = now
        self.hold()

    def check_clocks(self, now: float) -> None:
        """Close if the client is idle, sends a request too slowly, or does not read the answer."""
        limits = self.listener.limits
        if self.paused:
            self._check_reading(now)
            return
        began = self.began if self.frames is None else self.frames.began
        if began is not None and now - began > limits.arrival_time:
            self.listener.metrics.add("connections_too_slow_total")
            self.abort()
        elif self.task is None and not self.is_serving and began is None:
            idle = self.listener.keepalive if self.served else limits.arrival_time
            if now - self.heard > idle:
                self.transport.close()

    def _check_reading(self, now: float) -> None:
        """Abort if the client has read less than `SLOWEST_READER` since the timeout started."""
        seconds = now - self.paused_at
        if seconds <= self.listener.limits.write_time:
            return
        left = self.transport.get_write_buffer_size()
        if self.buffered - left < seconds * SLOWEST_READER:
            self.listener.metrics.add("connections_too_slow_total")
            self.abort()
        else:
            self.paused_at, self.buffered = now, left

    def leave(self) -> None:
        """Close after the answer to the request in progress."""
        if self.delegate is not None:
            return  # aiohttp closes its own connections
        self.closing = True
        if self.task is None and self.rest is None:
            self.transport.close()

    def abort(self) -> None:
        """Close immediately and drop unsent bytes."""
        self.closing, self.rest = True, None
        if self.task is not None:
            self.task.cancel()
        self.transport.abort()


def connection_of(request: Any) -> Connection | None:
    """Return the connection of an aiohttp request; None if the client has left."""
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, Connection) else None
