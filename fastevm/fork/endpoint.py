"""One URL of an upstream node: its connections, limits and latency."""

from __future__ import annotations

import os
import re
import socket
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPMessage
from itertools import count
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from fastevm.fork.call_list import RpcCall
from fastevm.fork.counters import ForkCounters
from fastevm.fork.rate_limit import TokenBucket, compute_units
from fastevm.fork.redact import Redactor, redacted
from fastevm.fork.refusals import BATCH, TOO_MANY_REQUESTS, is_limited
from fastevm.rpc_client.blocking import ERROR_STATUS, HttpAnswer, JsonRpcClient
from fastevm.rpc_client.large_json import decode
from fastevm.rpc_client.messages import (
    Answer,
    AnswerTooLarge,
    RpcRefusal,
    RpcUnreachable,
    answer_of,
    body_of,
    request_of,
    responses_by_id,
)

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024  # bytes of a decompressed answer
MISSING: Final = object()  # placeholder for an answer that a batch did not contain
SERVER_ERROR: Final = 500
TOO_LARGE_STATUS: Final = 413
LATENCIES: Final = 128  # number of recent answers used for the 95th percentile
MIN_LATENCIES: Final = 20
MIN_HEDGE_SECONDS: Final = 0.1
RESTING_SECONDS: Final = 5.0  # seconds for which a failed URL is avoided if there is another URL
STALE_SECONDS: Final = 1.0  # seconds within which a closed connection is detected
NO_CONNECTION: Final = (ConnectionRefusedError, socket.gaierror)
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
READS: Final = ("eth_", "net_", "web3_", "debug_trace", "trace_", "anvil_nodeInfo")
BATCH_SIZE = re.compile(r"too (large|many|big)|limit|max|exceed|at most|size|up to", re.I)
BATCH_NUMBER = re.compile(r"\b(\d{1,5})\b")

# unique across endpoints, so that no answer is taken for the answer to another request
_ids = count(1)


class Limited(Exception):
    """The endpoint's rate limit was exceeded. ``seconds``: value of Retry-After, or None."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class BatchRefused(Exception):
    """The endpoint refused the whole batch.

    ``limit``: the maximum size that the error text names, or None. ``about_size``: whether the text
    names the size as the reason.
    """

    def __init__(self, message: str, limit: int | None = None, *, about_size: bool = False) -> None:
        super().__init__(message)
        self.limit = limit
        self.about_size = about_size


class NotConnected(RpcUnreachable):
    """The connection or the host name lookup failed, so nothing was sent."""


class Endpoint:
    """One URL of an upstream. Sends calls without retries. Thread-safe.

    ``name`` is the URL without its key. ``batch_limit``: known maximum number of calls per body.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        rate: float,
        batch_limit: int,
        masker: Redactor,
        counters: ForkCounters,
        max_answer: int = MAX_ANSWER_BYTES,
        guarded: bool = False,
    ) -> None:
        self.url, self.name = url, redacted(url)
        self.batch_limit = batch_limit
        self.bucket = TokenBucket(rate)
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "max_answer": max_answer,
            "guarded": guarded,
            "headers": {"User-Agent": "fastevm", **headers},
            "compressed": not is_loopback(url),
        }
        self._redactor, self._counters = masker, counters
        self._idle: list[JsonRpcClient] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self._rests_until = 0.0

    @property
    def rests(self) -> bool:
        """Whether the endpoint failed recently."""
        return monotonic() < self._rests_until

    def failed(self) -> None:
        """Records a failure.

        The endpoint is avoided for a while if the upstream has another URL.
        """
        self._rests_until = monotonic() + RESTING_SECONDS

    def hedge_seconds(self) -> float | None:
        """Returns the 95th percentile of the latency in seconds, or None if it is not known yet."""
        with self._lock:
            if len(self._latencies) < MIN_LATENCIES:
                return None
            return max(MIN_HEDGE_SECONDS, sorted(self._latencies)[len(self._latencies) * 95 // 100])

    def seconds_to_wait(self, calls: Sequence[RpcCall]) -> float:
        """Charges the calls to the rate limit. Returns the seconds to wait before trying again."""
        return self.bucket.take(_price(calls))

    def count(self, calls: Sequence[RpcCall], sent_at: float, *, limited: bool) -> None:
        """Counts a request sent at ``sent_at``.

        ``limited``: the endpoint refused the request because of its rate limit.
        """
        update = self.bucket.limited if limited else self.bucket.answered
        update(_price(calls), sent_at)

    def exchange(self, calls: Sequence[RpcCall]) -> list[Answer]:
        """Returns the answers in order of the calls: a result, RpcRefusal, or ``MISSING``.

        Sends one HTTP request. Raises Limited, BatchRefused or RpcUnreachable; their texts contain
        no key.
        """
        requests = [request_of(call.method, call.params, next(_ids)) for call in calls]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        self._counters.add(requests=1, calls=len(calls))
        began = monotonic()
        try:
            answer = self._post(body, all(map(is_repeatable, calls)))
            self._counters.add(bytes=answer.wire_bytes)
            found = self._read(answer, requests)
        except AnswerTooLarge as error:
            if len(calls) > 1:
                raise BatchRefused(str(error), about_size=True) from None
            raise
        with self._lock:
            self._latencies.append(monotonic() - began)
        return found

    def close(self) -> None:
        """Closes idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _post(self, body: bytes, repeatable: bool) -> HttpAnswer:
        """Sends a body. If a reused connection was just closed, retries once on a new one."""
        client, began = self._connection(), monotonic()
        used = client is not None
        client = client or JsonRpcClient(self.url, **self._options)
        try:
            answer = client.post(body)
        except RpcUnreachable as error:
            client.close()
            too_large = isinstance(error, AnswerTooLarge)
            if used and repeatable and not too_large and monotonic() - began < STALE_SECONDS:
                self.close()
                return self._post(body, repeatable)
            kind = AnswerTooLarge if too_large else RpcUnreachable
            if isinstance(error.__cause__, NO_CONNECTION):
                kind = NotConnected
            raise kind(self._redactor.text(error)) from None
        with self._lock:
            self._idle.append(client)
        return answer

    def _connection(self) -> JsonRpcClient | None:
        """Returns an idle connection of this process, or None.

        Connections of the parent process (after a fork) are not used.
        """
        with self._lock:
            if self._process != os.getpid():
                self._process, self._idle = os.getpid(), []
            return self._idle.pop() if self._idle else None

    def _read(self, answer: HttpAnswer, requests: list[dict[str, Any]]) -> list[Answer]:
        """Returns the answers in a response; raises an error that concerns all calls."""
        try:
            value = _decoded(answer.body)
        except ValueError:
            self._check_status(answer, len(requests))
            raise RpcUnreachable(f"{self.name}: the answer is not JSON") from None
        if isinstance(value, list):
            found = responses_by_id(value)
            answers = [
                self._answer(request, found.get(request["id"]), answer.status)
                for request in requests
            ]
            if len(requests) > 1 and all(map(_is_about_the_batch, answers)):
                self._check_whole(answer, value[0], requests)
            return answers
        if not isinstance(value, dict) or ("error" not in value and "result" not in value):
            self._check_status(answer, len(requests))
            raise RpcUnreachable(f"{self.name}: the answer is not JSON-RPC")
        if len(requests) == 1:
            return [self._only_answer(answer, requests[0], value)]
        self._check_whole(answer, value, requests)
        raise BatchRefused(f"{self.name}: a single answer to a batch")

    def _only_answer(self, answer: HttpAnswer, request: dict[str, Any], value: Any) -> Answer:
        """Returns the answer to a single call. An error may lack the request id."""
        if value.get("id") != request["id"] and value.get("error") is None:
            raise RpcUnreachable(f"{self.name}: the answer belongs to another request")
        found = self._answer(request, value, answer.status)
        if is_limited(found) or (found is not None and answer.status == TOO_MANY_REQUESTS):
            raise Limited(f"{self.name}: {self._said(found)}", _retry_after(answer.headers))
        return found

    def _check_whole(self, answer: HttpAnswer, value: Any, requests: list[dict[str, Any]]) -> None:
        """Raises the exception for a single error object that answers a batch."""
        found = self._answer(requests[0], value, answer.status)
        text = f"{self.name}: {self._said(found)}"
        if is_limited(found) or answer.status == TOO_MANY_REQUESTS:
            raise Limited(text, _retry_after(answer.headers))
        if isinstance(found, RpcRefusal):
            numbers = [int(item) for item in BATCH_NUMBER.findall(found.message)]
            fitting = [number for number in numbers if 0 < number < len(requests)]
            about_size = bool(BATCH_SIZE.search(found.message))
            limit = max(fitting, default=None) if about_size else None
            raise BatchRefused(text, limit, about_size=about_size)

    def _check_status(self, answer: HttpAnswer, size: int) -> None:
        """Raises the exception for an HTTP error status without JSON-RPC."""
        status, text = answer.status, f"{self.name}: HTTP status {answer.status}"
        after = _retry_after(answer.headers)
        if status == TOO_MANY_REQUESTS or (status >= SERVER_ERROR and after is not None):
            raise Limited(text, after)
        if size > 1 and (ERROR_STATUS <= status < SERVER_ERROR):
            raise BatchRefused(text, about_size=status == TOO_LARGE_STATUS)
        if status >= ERROR_STATUS:
            raise RpcUnreachable(text, status)

    def _answer(self, request: dict[str, Any], response: Any, status: int) -> Answer:
        if response is None:
            return MISSING
        error = response.get("error")
        if error is not None and not isinstance(error, dict):
            code = status if status >= ERROR_STATUS else 0
            return RpcRefusal(code, self._redactor.text(f"HTTP status {status}: {error}"))
        found = answer_of(request, response)
        if isinstance(found, RpcRefusal):
            return RpcRefusal(found.code, self._redactor.text(found.message), found.data)
        return found

    def _said(self, found: Answer) -> str:
        return f"{found.message} ({found.code})" if isinstance(found, RpcRefusal) else "no error"


def is_repeatable(call: RpcCall) -> bool:
    """Returns whether the call is idempotent."""
    return call.method.startswith(READS) and not call.method.startswith("eth_send")


def is_loopback(url: str) -> bool:
    """Returns whether the URL refers to this machine."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.")


def _is_about_the_batch(answer: Answer) -> bool:
    return isinstance(answer, RpcRefusal) and bool(BATCH.search(answer.message))


def _decoded(body: bytes) -> Any:
    """Decodes a body. Raises ValueError."""
    try:
        return decode(body, msgspec.json.decode)
    except (ValueError, RecursionError):
        pass
    try:
        return decode(body)  # json.loads accepts numbers and characters that msgspec rejects
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _retry_after(headers: HTTPMessage) -> float | None:
    """Returns the seconds of a Retry-After header, whose value is a number or a date."""
    text = headers.get("Retry-After")
    if text is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError, TypeError):
        until = parsedate_to_datetime(text)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    return None


def _price(calls: Sequence[RpcCall]) -> int:
    """Returns the price of the calls in compute units."""
    return compute_units(call.method for call in calls)
