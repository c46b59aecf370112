"""A blocking JSON-RPC client over HTTP, with one persistent connection."""

import select
import socket
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
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

from fastevm.errors import error_text
from fastevm.rpc_client.messages import (
    CONTENT_TYPE,
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
)
from fastevm.rpc_client.special_addresses import connect

ERROR_STATUS: Final = 300  # HTTP statuses from this one on are failures; redirects are not followed
PIECE_BYTES: Final = 1 << 20  # bytes per read of an answer
GZIP: Final = 31  # wbits value of zlib for a gzip header


class HttpAnswer(NamedTuple):
    """An HTTP response. ``body`` is decompressed, ``wire_bytes`` is its compressed length."""

    status: int
    headers: HTTPMessage
    body: bytes
    wire_bytes: int


class JsonRpcClient:
    """Calls a node over HTTP or HTTPS. Only one thread may use an object.

    ``timeout``: seconds for each wait on the socket, and for a whole answer. ``headers`` are sent
    with every request; ``compressed``: request gzip; ``guarded``: refuse link-local addresses and
    metadata services, for a URL from a request. If the node has closed the connection, the next
    call reopens it; no request is sent twice.
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

        Sends one body: a request for a single call, a batch for more.
        """
        requests = [request_of(method, params, next(self._ids)) for method, params in calls]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        return answers_in(self.send(body), requests) if requests else []

    def send(self, body: bytes) -> bytes:
        """Returns the answer to a body. Raises RpcUnreachable, also for an HTTP status >= 400."""
        answer = self.post(body)
        if answer.status >= ERROR_STATUS:
            raise self._failure(f"HTTP status {answer.status}", answer.status)
        return answer.body

    def post(self, body: bytes) -> HttpAnswer:
        """Returns the response, whatever its status. Raises RpcUnreachable or AnswerTooLarge."""
        try:
            self._drop_ended_connection()
            ends = monotonic() + self.timeout
            self._connection.request("POST", self._target, body, self._headers)
            response = self._connection.getresponse()
            sent = self._read(response, ends)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._failure(error_text(error)) from error
        unzips = response.getheader("Content-Encoding") == "gzip"
        answer = self._unzipped(sent) if unzips else sent
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

    def _unzipped(self, body: bytes) -> bytes:
        try:
            stream = zlib.decompressobj(GZIP)
            found = stream.decompress(body, self.max_answer + 1)
        except zlib.error:
            raise self._failure("the answer is not gzip") from None
        if len(found) > self.max_answer:
            raise self._too_large()
        if not stream.eof:
            raise self._failure("the gzip answer is truncated")
        return found

    def _too_large(self) -> AnswerTooLarge:
        self.close()
        where = shown_address(self.url)
        return AnswerTooLarge(f"{where}: the answer has more than {self.max_answer} bytes")

    def close(self) -> None:
        """Closes the connection; the next call opens a new one."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _drop_ended_connection(self) -> None:
        """Closes the connection if it is readable before a request: the node has closed it."""
        waiting: socket.socket | None = self._connection.sock
        if waiting is not None and _can_be_read(waiting):
            self.close()

    def _failure(self, reason: str, status: int | None = None) -> RpcUnreachable:
        return RpcUnreachable(f"{shown_address(self.url)}: {reason}", status)


def _can_be_read(waiting: socket.socket) -> bool:
    """Returns whether bytes or the end can be read; `select` raises for descriptors >= 1,024."""
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
