"""A blocking JSON-RPC client over HTTP, with one persistent connection."""

import io
import select
import socket
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPMessage,
    HTTPResponse,
    HTTPSConnection,
)
from itertools import count
from time import monotonic
from typing import Any, Final, NamedTuple, Self
from urllib.parse import SplitResult, unquote, urlsplit

from fastevm.core.primitives.decompression import TooLarge
from fastevm.errors import error_text
from fastevm.rpc_client.messages import (
    CONTENT_TYPE,
    HEAD_BYTES,
    MAX_ANSWER_BYTES,
    REQUEST_SECONDS,
    Answer,
    AnswerTooLarge,
    Call,
    RpcUnreachable,
    answers_in,
    body_of,
    checked_address,
    request_of,
    result_of,
    shown_address,
    unpacked_body,
)
from fastevm.rpc_client.special_addresses import connect

# HTTP statuses >= this are failures, also redirects, which the client does not follow
ERROR_STATUS: Final = 300
PIECE_BYTES: Final = 1 << 20  # bytes per read of an answer


class HttpAnswer(NamedTuple):
    """An HTTP response.

    ``body`` is decompressed. ``wire_bytes`` is the number of received bytes before decompression.
    """

    status: int
    headers: HTTPMessage
    body: bytes
    wire_bytes: int


class TimedReads(io.RawIOBase):
    """Reads from a socket until the deadline ``ends``.

    Before `head_ended` is called, reads at most `HEAD_BYTES` plus one buffer.

    A socket timeout would not limit the total time, because it restarts with every received byte.
    """

    def __init__(self, sock: socket.socket, reads: io.RawIOBase, ends: float) -> None:
        self.sock, self.reads, self.ends = sock, reads, ends
        self.left: int | None = HEAD_BYTES

    def head_ended(self) -> None:
        """Stops counting bytes, because the body follows."""
        self.left = None

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Reads from the socket once. Returns the number of bytes.

        Raises TimeoutError after the deadline, and HTTPException if the head is too large.
        """
        if self.left is not None and self.left < 0:
            raise HTTPException(f"the head of the answer has more than {HEAD_BYTES} bytes")
        seconds = self.ends - monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        self.sock.settimeout(seconds)
        count = self.reads.readinto(buffer)
        if self.left is not None and count:
            self.left -= count
        return int(count)

    def close(self) -> None:
        """Closes the reads of the socket."""
        if not self.closed:
            self.reads.close()
        super().close()


class BoundedResponse(HTTPResponse):
    """A response whose heads are limited in size. It must arrive before the time ``ends``.

    http.client skips any number of interim heads (status 1xx).
    """

    def __init__(self, sock: socket.socket, *args: Any, ends: float, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self._reads = TimedReads(sock, self.fp.detach(), ends)
        self.fp = io.BufferedReader(self._reads)

    def begin(self) -> None:
        """Reads the head."""
        super().begin()
        self._reads.head_ended()


class JsonRpcClient:
    """Calls a node over HTTP or HTTPS. Only one thread may use an object.

    ``timeout``: seconds for a whole request and its answer. ``headers``: sent with every request.
    ``compressed``: request gzip. ``guarded``: refuse to connect to link-local addresses and
    metadata services; for a URL that a client sent in a request. If the node has closed the
    connection, the next call opens a new connection. No request is sent twice.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = REQUEST_SECONDS,
        max_answer: int = MAX_ANSWER_BYTES,
        headers: Mapping[str, str] | None = None,
        compressed: bool = False,
        guarded: bool = False,
    ) -> None:
        parts = urlsplit(checked_address(url, "http", "https"))
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.url, self.timeout, self.max_answer = url, timeout, max_answer
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = CONTENT_TYPE | _authorization(parts) | dict(headers or {})
        self._compressed = compressed
        if compressed:
            self._headers["Accept-Encoding"] = "gzip"
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        if guarded:
            self._connection._create_connection = connect  # type: ignore[attr-defined]
        self._ids = count(1)

    def call(self, method: str, *params: Any) -> Any:
        """Returns the result. Raises RpcRefusal or RpcUnreachable."""
        return result_of(self.batch([(method, params)])[0])

    def batch(self, calls: Sequence[Call]) -> list[Answer]:
        """Returns a result or an RpcRefusal for each call, in order. Raises RpcUnreachable.

        Sends a single call as a request and several calls as a batch.
        """
        requests = [request_of(method, params, next(self._ids)) for method, params in calls]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        return answers_in(self.send(body), requests) if requests else []

    def send(self, body: bytes) -> bytes:
        """Sends a body and returns the answer.

        Raises RpcUnreachable, also for an HTTP status >= ``ERROR_STATUS``.
        """
        answer = self.post(body)
        if answer.status >= ERROR_STATUS:
            raise self._failure(f"HTTP status {answer.status}", answer.status)
        return answer.body

    def post(self, body: bytes) -> HttpAnswer:
        """Sends a body and returns the response, whatever its status.

        Raises RpcUnreachable or AnswerTooLarge.
        """
        try:
            self._drop_ended_connection()
            ends = monotonic() + self.timeout
            if self._connection.sock is not None:  # the previous answer left a shorter timeout
                self._connection.sock.settimeout(self.timeout)
            response_class: Any = partial(BoundedResponse, ends=ends)
            self._connection.response_class = response_class
            self._connection.request("POST", self._target, body, self._headers)
            response = self._connection.getresponse()
            sent = self._read(response, ends)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._failure(error_text(error)) from error
        encoding = response.getheader("Content-Encoding") or ""
        try:
            answer = unpacked_body(sent, encoding, self._compressed, self.max_answer)
        except TooLarge:
            raise self._too_large() from None
        except ValueError as error:
            raise self._failure(str(error)) from None
        return HttpAnswer(response.status, response.headers, answer, len(sent))

    def _read(self, response: HTTPResponse, ends: float) -> bytes:
        pieces, size = [], 0
        while piece := response.read1(PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > self.max_answer:
                raise self._too_large()
            if monotonic() > ends:
                raise TimeoutError(f"incomplete answer after {self.timeout:g} seconds")
        if response.length:  # Content-Length was not reached
            raise HTTPException(f"the answer lacks its last {response.length} bytes")
        response.close()  # allows the connection to be reused
        return b"".join(pieces)

    def _too_large(self) -> AnswerTooLarge:
        self.close()
        where = shown_address(self.url)
        return AnswerTooLarge(f"{where}: the answer has more than {self.max_answer} bytes")

    def close(self) -> None:
        """Closes the connection. The next call opens a new connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _drop_ended_connection(self) -> None:
        """Closes the connection if it is readable before a request, because then the node has
        closed it.
        """
        waiting: socket.socket | None = self._connection.sock
        if waiting is not None and _can_be_read(waiting):
            self.close()

    def _failure(self, reason: str, status: int | None = None) -> RpcUnreachable:
        return RpcUnreachable(f"{shown_address(self.url)}: {reason}", status)


def _can_be_read(waiting: socket.socket) -> bool:
    """Returns whether bytes, or the end of the stream, can be read now.

    Uses `poll` where it exists, because `select` raises for descriptors >= 1,024.
    """
    if not hasattr(select, "poll"):
        return bool(select.select([waiting], [], [], 0)[0])
    poll = select.poll()
    poll.register(waiting, select.POLLIN)
    return bool(poll.poll(0))


def call_once(url: str, method: str, *params: Any, timeout: float = REQUEST_SECONDS) -> Any:
    """Makes one call on a separate connection. Raises RpcRefusal or RpcUnreachable."""
    with JsonRpcClient(url, timeout=timeout) as client:
        return client.call(method, *params)


def _authorization(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
