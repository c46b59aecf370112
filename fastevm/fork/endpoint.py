"""One address of an upstream node: its connections, its limits, how fast it answers."""

from __future__ import annotations

import json
import os
import re
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
from fastevm.fork.redact import Masker, masked
from fastevm.fork.refusals import BATCH, TOO_MANY_REQUESTS, is_limited
from fastevm.rpc_client.blocking import ERROR_STATUS, HttpAnswer, JsonRpcClient
from fastevm.rpc_client.messages import (
    Answer,
    AnswerTooLarge,
    RpcRefusal,
    RpcUnreachable,
    answer_of,
    body_of,
    request_of,
)

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024  # of one answer, decompressed
MISSING: Final = object()  # in place of an answer that a batch did not bring
SERVER_ERROR: Final = 500
TOO_LARGE_STATUS: Final = 413
LATENCIES: Final = 128  # answers of which the slowest 5 % are known
MIN_LATENCIES: Final = 20
MIN_HEDGE_SECONDS: Final = 0.1
RESTING_SECONDS: Final = 5.0  # that an address is left alone after it failed, if there is another
STALE_SECONDS: Final = 1.0  # within which a connection that the other side closed is found out
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
READS: Final = ("eth_", "net_", "web3_", "debug_trace", "trace_", "anvil_nodeInfo")
BATCH_SIZE = re.compile(r"too (large|many|big)|limit|max|exceed|at most|size|up to", re.I)
BATCH_NUMBER = re.compile(r"\b(\d{1,5})\b")

_ids = count(1)  # of all endpoints: an answer to another request is never taken for ours


class Limited(Exception):
    """A limit of calls in time was reached; ``seconds``: what Retry-After says, else None."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


class BatchRefused(Exception):
    """The batch as such was refused; ``limit``: the size that the text names, else None.

    ``about_size``: whether that is said to be the reason.
    """

    def __init__(self, message: str, limit: int | None = None, *, about_size: bool = False) -> None:
        super().__init__(message)
        self.limit = limit
        self.about_size = about_size


class Endpoint:
    """Sends calls to one address, once, and says what came of it. Safe to use from threads.

    ``name`` is the address without its key. ``batch_limit``: calls in one body, as far as known.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        rate: float,
        batch_limit: int,
        masker: Masker,
        counters: ForkCounters,
        max_answer: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.url, self.name = url, masked(url)
        self.batch_limit = batch_limit
        self.bucket = TokenBucket(rate)
        self._options: dict[str, Any] = {
            "timeout": timeout,
            "max_answer": max_answer,
            "headers": {"User-Agent": "fastevm", **headers},
            "compressed": not is_loopback(url),
        }
        self._masker, self._counters = masker, counters
        self._idle: list[JsonRpcClient] = []
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self._rests_until = 0.0

    @property
    def rests(self) -> bool:
        """Whether it failed lately."""
        return monotonic() < self._rests_until

    def failed(self) -> None:
        """Leave it alone for a while, if there is another."""
        self._rests_until = monotonic() + RESTING_SECONDS

    def hedge_seconds(self) -> float | None:
        """The seconds within which 95 % of the answers came; None while that is not known."""
        with self._lock:
            if len(self._latencies) < MIN_LATENCIES:
                return None
            return max(MIN_HEDGE_SECONDS, sorted(self._latencies)[len(self._latencies) * 95 // 100])

    def seconds_to_wait(self, calls: Sequence[RpcCall]) -> float:
        """Pay for the calls; the seconds by which they must be held back."""
        return self.bucket.take(compute_units(call.method for call in calls))

    def exchange(self, calls: Sequence[RpcCall]) -> list[Answer]:
        """One answer for each call in their order: a result, RpcRefusal, or ``MISSING``.

        One HTTP request. Limited, BatchRefused, RpcUnreachable; their texts hold no key.
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
        """Close the connections that are open and not in use."""
        with self._lock:
            idle, self._idle = self._idle, []
        for client in idle:
            client.close()

    def _post(self, body: bytes, repeatable: bool) -> HttpAnswer:
        """Send a body; at once again on a new connection if an old one was just closed."""
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
            raise kind(self._masker.text(error)) from None
        with self._lock:
            self._idle.append(client)
        return answer

    def _connection(self) -> JsonRpcClient | None:
        """A connection that nobody uses; those of the process that this one was forked from stay
        its own."""
        with self._lock:
            if self._process != os.getpid():
                self._process, self._idle = os.getpid(), []
            return self._idle.pop() if self._idle else None

    def _read(self, answer: HttpAnswer, requests: list[dict[str, Any]]) -> list[Answer]:
        """The answers in a response, or what it says about all calls at once."""
        try:
            value = _decoded(answer.body)
        except ValueError:
            self._check_status(answer, len(requests))
            raise RpcUnreachable(f"{self.name}: an answer that is no JSON") from None
        if isinstance(value, list):
            found = {one.get("id"): one for one in value if isinstance(one, dict)}
            answers = [self._answer(one, found.get(one["id"]), answer.status) for one in requests]
            if len(requests) > 1 and all(map(_is_about_the_batch, answers)):
                self._check_whole(answer, value[0], requests)
            return answers
        if not isinstance(value, dict) or ("error" not in value and "result" not in value):
            self._check_status(answer, len(requests))
            raise RpcUnreachable(f"{self.name}: an answer that is no JSON-RPC")
        if len(requests) == 1:
            return [self._only_answer(answer, requests[0], value)]
        self._check_whole(answer, value, requests)
        raise BatchRefused(f"{self.name}: one answer to a batch")

    def _only_answer(self, answer: HttpAnswer, request: dict[str, Any], value: Any) -> Answer:
        """The answer to a single call; an error may lack the id of its request."""
        if value.get("id") != request["id"] and value.get("error") is None:
            raise RpcUnreachable(f"{self.name}: an answer to another request")
        found = self._answer(request, value, answer.status)
        if is_limited(found) or (found is not None and answer.status == TOO_MANY_REQUESTS):
            raise Limited(f"{self.name}: {self._said(found)}", _retry_after(answer.headers))
        return found

    def _check_whole(self, answer: HttpAnswer, value: Any, requests: list[dict[str, Any]]) -> None:
        """Raise what one error in answer to a batch means."""
        found = self._answer(requests[0], value, answer.status)
        text = f"{self.name}: {self._said(found)}"
        if is_limited(found) or answer.status == TOO_MANY_REQUESTS:
            raise Limited(text, _retry_after(answer.headers))
        if isinstance(found, RpcRefusal):
            numbers = [int(one) for one in BATCH_NUMBER.findall(found.message)]
            fitting = [one for one in numbers if 0 < one < len(requests)]
            about_size = bool(BATCH_SIZE.search(found.message))
            limit = max(fitting, default=None) if about_size else None
            raise BatchRefused(text, limit, about_size=about_size)

    def _check_status(self, answer: HttpAnswer, size: int) -> None:
        """Raise what an HTTP status of failure without JSON-RPC means."""
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
            return RpcRefusal(code, self._masker.text(f"HTTP status {status}: {error}"))
        found = answer_of(request, response)
        if isinstance(found, RpcRefusal):
            return RpcRefusal(found.code, self._masker.text(found.message), found.data)
        return found

    def _said(self, found: Answer) -> str:
        return f"{found.message} ({found.code})" if isinstance(found, RpcRefusal) else "no error"


def is_repeatable(call: RpcCall) -> bool:
    """Whether sending the call twice does no more than sending it once."""
    return call.method.startswith(READS) and not call.method.startswith("eth_send")


def is_loopback(url: str) -> bool:
    """Whether the address is one of this machine."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.")


def _is_about_the_batch(answer: Answer) -> bool:
    return isinstance(answer, RpcRefusal) and bool(BATCH.search(answer.message))


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return json.loads(body)  # which takes numbers and characters that msgspec refuses


def _retry_after(headers: HTTPMessage) -> float | None:
    """The seconds in a Retry-After, which are given as a number or as a date."""
    text = headers.get("Retry-After")
    if text is None:
        return None
    with suppress(ValueError):
        return max(0.0, float(text))
    with suppress(ValueError, TypeError):
        until = parsedate_to_datetime(text)
        return max(0.0, (until - datetime.now(UTC)).total_seconds())
    return None
