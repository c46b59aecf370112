"""A blocking JSON-RPC client over HTTP, on one connection that stays open."""

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

ERROR_STATUS: Final = 400  # HTTP statuses from here on are failures
PIECE_BYTES: Final = 1 << 20  # of an answer, read at once
GZIP: Final = 31  # what zlib calls a stream with gzip's header


class HttpAnswer(NamedTuple):
    """An HTTP response; ``body`` is decompressed.

    ``wire_bytes``: the length of the body as it was sent.
    """

    status: int
    headers: HTTPMessage
    body: bytes
    wire_bytes: int


class JsonRpcClient:
    """Calls a node over HTTP or HTTPS. One object belongs to one thread.

    ``timeout`` in seconds for each wait on the socket, and for a whole answer. ``headers`` go with
    every request, ``compressed`` asks for answers in gzip. A connection that the node closed is
    opened again by the next call; no request is ever sent twice.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = REQUEST_SECONDS,
        max_answer: int = MAX_ANSWER_BYTES,
        headers: Mapping[str, str] | None = None,
        compressed: bool = False,
    ) -> None:
        parts = urlsplit(checked_address(url, "http", "https"))
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.url, self.timeout, self.max_answer = url, timeout, max_answer
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = CONTENT_TYPE | _authorization(parts) | dict(headers or {})
        if compressed:
            self._headers["Accept-Encoding"] = "gzip"
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        self._ids = count(1)

    def call(self, method: str, *params: Any) -> Any:
        """The result. RpcRefusal or RpcUnreachable."""
        return result_of(self.batch([(method, params)])[0])

    def batch(self, calls: Sequence[Call]) -> list[Answer]:
        """One answer for each call in their order: a result or an RpcRefusal. RpcUnreachable.

        One body: a request for a single call, a batch for more.
        """
        requests = [request_of(method, params, next(self._ids)) for method, params in calls]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        return answers_in(self.send(body), requests) if requests else []

    def send(self, body: bytes) -> bytes:
        """The answer to a body. RpcUnreachable, also for an HTTP status of failure."""
        answer = self.post(body)
        if answer.status >= ERROR_STATUS:
            raise self._failure(f"HTTP status {answer.status}", answer.status)
        return answer.body

    def post(self, body: bytes) -> HttpAnswer:
        """The answer to a body, of whatever HTTP status. RpcUnreachable, AnswerTooLarge."""
        try:
            self._drop_ended_connection()
            ends = monotonic() + self.timeout
            self._connection.request("POST", self._target, body, self._headers)
            response = self._connection.getresponse()
            sent = self._read(response, ends)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._failure(str(error) or type(error).__name__) from error
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
                raise TimeoutError(f"no whole answer within {self.timeout:g} seconds")
        if response.length:  # what the header announced and the connection did not bring
            raise HTTPException(f"an answer that lacks its last {response.length} bytes")
        response.close()  # of which the connection takes note
        return b"".join(pieces)

    def _unzipped(self, body: bytes) -> bytes:
        try:
            stream = zlib.decompressobj(GZIP)
            found = stream.decompress(body, self.max_answer + 1)
        except zlib.error:
            raise self._failure("an answer that is no gzip") from None
        if len(found) > self.max_answer:
            raise self._too_large()
        if not stream.eof:
            raise self._failure("an answer whose gzip is cut")
        return found

    def _too_large(self) -> AnswerTooLarge:
        self.close()
        where = shown_address(self.url)
        return AnswerTooLarge(f"{where}: an answer of more than {self.max_answer} bytes")

    def close(self) -> None:
        """Close the connection; the next call opens one."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _drop_ended_connection(self) -> None:
        """What can be read before a request is sent is the end of the connection."""
        waiting: socket.socket | None = self._connection.sock
        if waiting is not None and select.select([waiting], [], [], 0)[0]:
            self.close()

    def _failure(self, reason: str, status: int | None = None) -> RpcUnreachable:
        return RpcUnreachable(f"{shown_address(self.url)}: {reason}", status)


def call_once(url: str, method: str, *params: Any, timeout: float = REQUEST_SECONDS) -> Any:
    """The result of one call on a connection of its own. RpcRefusal or RpcUnreachable."""
    with JsonRpcClient(url, timeout=timeout) as client:
        return client.call(method, *params)


def _authorization(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
