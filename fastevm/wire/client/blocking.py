"""A blocking JSON-RPC client over HTTP, on one connection that stays open."""

import select
import socket
from base64 import b64encode
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import count
from typing import Any, Final, Self
from urllib.parse import SplitResult, unquote, urlsplit

from fastevm.wire.client.messages import (
    CONTENT_TYPE,
    MAX_ANSWER_BYTES,
    REQUEST_SECONDS,
    Answer,
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


class JsonRpcClient:
    """Calls a node over HTTP or HTTPS. One object belongs to one thread.

    ``timeout`` in seconds for each wait on the socket. A connection that the node closed is opened
    again by the next call; no request is ever sent twice.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = REQUEST_SECONDS,
        max_answer: int = MAX_ANSWER_BYTES,
    ) -> None:
        parts = urlsplit(checked_address(url, "http", "https"))
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self.url, self.max_answer = url, max_answer
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = CONTENT_TYPE | _authorization(parts)
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
        """The answer to a body as it came. RpcUnreachable."""
        try:
            self._drop_ended_connection()
            self._connection.request("POST", self._target, body, self._headers)
            response = self._connection.getresponse()
            answer = response.read(self.max_answer + 1)
        except (OSError, HTTPException) as error:
            self.close()
            raise self._failure(str(error) or type(error).__name__) from error
        if len(answer) > self.max_answer:
            self.close()
            raise self._failure(f"an answer of more than {self.max_answer} bytes")
        if response.status >= ERROR_STATUS:
            raise self._failure(f"HTTP status {response.status}", response.status)
        return answer

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
