"""Sends calls to an upstream with one or several URLs: batches, retries, fail-over, hedging."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final, TypeVar

from msgspec import Struct

from fastevm.core.primitives.replace import replace
from fastevm.errors import ForkError
from fastevm.fork.call_list import RpcCall
from fastevm.fork.counters import ForkCounters
from fastevm.fork.endpoint import (
    MISSING,
    BatchRefused,
    Endpoint,
    Limited,
    NotConnected,
    is_repeatable,
)
from fastevm.fork.progress import Progress
from fastevm.fork.rate_limit import DEFAULT_UNITS_PER_SECOND, compute_units
from fastevm.fork.redact import Redactor
from fastevm.fork.refusals import is_limited, means_no_block, means_no_state
from fastevm.fork.request_defaults import DEFAULT_BACKOFF, DEFAULT_RETRIES, DEFAULT_TIMEOUT
from fastevm.rpc_client.messages import (
    Answer,
    RpcRefusal,
    RpcUnreachable,
    checked_address,
)

DEFAULT_BATCH_SIZE: Final = 250  # calls per body
MAX_BACKOFF: Final = 30.0
TIMEOUTS_IN_ALL: Final = 4  # time limit of all retries together, in request timeouts
MAX_IN_FLIGHT: Final = 16  # parallel requests
# retries of calls about a block or state that some servers of the endpoint lack
BLOCK_RETRIES: Final = 3
BLOCK_RETRY_SECONDS: Final = 0.2
MAX_HEDGED_SHARE: Final = 0.1  # maximum share of requests that are sent twice
# share of a second's compute units that a batch may cost after a rate limit error
QUOTA_SHARE: Final = 0.5
TICK_SECONDS: Final = 0.2  # seconds between two updates of the progress bar
CLIENT_ERRORS: Final = range(400, 500)
NOT_ANSWERED: Final = -1  # error code of an optional call dropped with its batch

Value = TypeVar("Value")
OnAnswers = Callable[[Mapping[int, Answer]], None]


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Options of requests to an upstream.

    ``headers`` are sent with every request. A failed request is repeated up to ``retries`` times.
    The delay is ``backoff`` seconds at first and doubles each time; ``timeout`` is in seconds per
    request. ``compute_units_per_second`` throttles calls after the endpoint reported a rate limit,
    if ``rate_limit`` is true. ``batch_size``: calls per body. ``progress``: show a progress bar on
    a terminal. ``guarded``: refuse link-local addresses and metadata services.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    retries: int = DEFAULT_RETRIES
    timeout: float = DEFAULT_TIMEOUT
    backoff: float = DEFAULT_BACKOFF
    compute_units_per_second: float = DEFAULT_UNITS_PER_SECOND
    rate_limit: bool = True
    batch_size: int = DEFAULT_BATCH_SIZE
    progress: bool = True
    guarded: bool = False


class _Part(Struct, frozen=True):
    """The calls (by index) that are sent in one body.

    ``depth``: number of round trips before this body.
    """

    indices: tuple[int, ...]
    attempt: int = 0
    depth: int = 1
    not_before: float = 0.0
    last: Endpoint | None = None
    reason: str = ""


class _TimeLimit(Struct):
    """The deadline of one `Endpoints.ask` (monotonic). Delays for the rate limit extend it."""

    seconds: float
    ends: float

    def held(self, seconds: float) -> None:
        """Extends the deadline by the ``seconds`` that a request is delayed."""
        if seconds > 0:
            self.ends = max(self.ends, monotonic() + seconds + self.seconds)

    @property
    def is_over(self) -> bool:
        """Whether the deadline has passed."""
        return monotonic() > self.ends


class _Outcome(Struct):
    answers: dict[int, Answer] = {}
    again: list[_Part] = []


class Endpoints:
    """The URLs of one upstream, used in rotation. Thread-safe.

    Requests run in separate threads, at most ``MAX_IN_FLIGHT`` for one ``ask``. If ``offline``, no
    requests are sent.
    """

    offline = False

    def __init__(
        self, urls: Sequence[str], options: EndpointOptions, counters: ForkCounters
    ) -> None:
        if not urls:
            raise ValueError("urls: expected at least one URL")
        self.urls = tuple(checked_address(url, "http", "https") for url in urls)
        self.options, self.counters = options, counters
        self.masker = Redactor(self.urls, options.headers)
        self._all = [
            Endpoint(
                url,
                headers=options.headers,
                timeout=options.timeout,
                rate=options.compute_units_per_second if options.rate_limit else 0,
                batch_limit=max(1, options.batch_size),
                masker=self.masker,
                counters=counters,
                guarded=options.guarded,
            )
            for url in self.urls
        ]
        self._next = random.randrange(len(self._all))
        self._closed = threading.Event()
        self._connected = False  # whether any URL has ever answered

    @property
    def name(self) -> str:
        """The URLs without their keys."""
        return ", ".join(item.name for item in self._all)

    @property
    def batch_limit(self) -> int:
        """The number of calls that every URL accepts per body, as far as known."""
        return min(item.batch_limit for item in self._all)

    @batch_limit.setter
    def batch_limit(self, limit: int) -> None:
        for item in self._all:
            item.batch_limit = min(item.batch_limit, max(1, limit))

    def ask(self, calls: Sequence[RpcCall], on_answers: OnAnswers | None = None) -> list[Answer]:
        """Returns the answers in order of the calls. Each is a result or an RpcRefusal.

        ``on_answers`` receives answers (by index) as they arrive. Raises ForkError if an answer
        cannot be obtained; ``on_answers`` has received all earlier answers by then.
        """
        if not calls:
            return []
        if self.offline:
            raise ForkError(f"offline: {calls[0]} is not answered by the cache")
        began = monotonic()
        answers: list[Answer] = [MISSING] * len(calls)
        depth = 0
        progress = Progress(self.name, len(calls), shown=self.options.progress)
        try:
            for part, outcome in self._attempt_all(calls, began, progress):
                depth = max(depth, part.depth)
                for index, answer in outcome.answers.items():
                    answers[index] = answer
                progress.advance(len(outcome.answers))
                if on_answers is not None and outcome.answers:
                    on_answers(outcome.answers)
        finally:
            progress.close()
            self.counters.add(round_trips=depth, seconds_waited=monotonic() - began)
        return answers

    def close(self) -> None:
        """Closes the connections. Threads that wait for an answer get ForkError."""
        self._closed.set()
        for item in self._all:
            item.close()

    def _attempt_all(self, calls: Sequence[RpcCall], began: float, progress: Progress) -> Any:
        """Sends parts until every call has an answer. Yields each part with its outcome."""
        seconds = TIMEOUTS_IN_ALL * self.options.timeout
        limit = _TimeLimit(seconds, began + seconds)
        size = min(self.batch_limit, *(_admitted(calls, item) for item in self._all))
        todo = deque(_parts_of(range(len(calls)), _Part(()), size))
        running: dict[Future[_Outcome], _Part] = {}
        while todo or running:
            while todo and len(running) < MAX_IN_FLIGHT:
                part = todo.popleft()
                running[_in_thread(partial(self._attempt, part, calls, limit))] = part
            done, _ = wait(running, timeout=TICK_SECONDS, return_when=FIRST_COMPLETED)
            progress.tick()
            if not done and (self._closed.is_set() or limit.is_over):
                raise ForkError(f"{self.name}: {self._why_ended(limit)}")
            for future in done:
                part = running.pop(future)
                outcome = future.result()
                for item in outcome.again:
                    todo.extend(_parts_of(item.indices, item, self.batch_limit))
                    self._check(item, limit)
                yield part, outcome

    def _why_ended(self, limit: _TimeLimit) -> str:
        if limit.is_over:
            return f"no answer within {limit.seconds:g} seconds"
        return "the fork was closed"

    def _check(self, part: _Part, limit: _TimeLimit) -> None:
        """Raises ForkError if a part has used all its attempts."""
        if part.attempt > self.options.retries:
            raise ForkError(f"{part.reason} (after {part.attempt} attempts)")
        if part.not_before > limit.ends:
            wait_seconds = part.not_before - monotonic()
            raise ForkError(
                f"{part.reason}: the next attempt would be in {wait_seconds:.0f} seconds, but the"
                f" time limit of all attempts is {limit.seconds:g} seconds"
            )

    def _attempt(self, part: _Part, calls: Sequence[RpcCall], limit: _TimeLimit) -> _Outcome:
        """Sends a part once and returns the outcome."""
        endpoint = self._choose(part)
        mine = [calls[index] for index in part.indices]
        self._await_turn(part, mine, endpoint, limit)
        if part.depth > 1:
            self.counters.add(retries=1)
        sent_at = monotonic()
        try:
            found = self._hedged(endpoint, mine)
            self._connected = True
        except Limited as refusal:
            endpoint.count(mine, sent_at, limited=True)
            return self._limited(part, mine, endpoint, refusal)
        except BatchRefused as found_too_large:
            return self._refused_batch(part, calls, endpoint, found_too_large)
        except RpcUnreachable as error:
            return self._unreachable(part, calls, endpoint, error)
        endpoint.count(mine, sent_at, limited=any(map(is_limited, found)))
        return self._answered(part, mine, endpoint, found)

    def _await_turn(
        self, part: _Part, mine: Sequence[RpcCall], endpoint: Endpoint, limit: _TimeLimit
    ) -> None:
        """Waits until the part is due and the endpoint's rate limit admits its calls.

        Raises ForkError if the endpoints are closed meanwhile.
        """
        seconds = part.not_before - monotonic()
        while seconds > 0 or (seconds := endpoint.seconds_to_wait(mine)) > 0:
            limit.held(seconds)
            if self._closed.wait(seconds):
                raise ForkError(f"{endpoint.name}: the fork was closed")
            seconds = 0.0

    def _choose(self, part: _Part) -> Endpoint:
        """Returns the next URL. Avoids URLs that failed recently, and then the URL used last."""
        if len(self._all) == 1:
            return self._all[0]
        self._next += 1
        turn = [self._all[(self._next + k) % len(self._all)] for k in range(len(self._all))]
        return min(turn, key=lambda item: (item.rests, item is part.last))

    def _hedged(self, endpoint: Endpoint, calls: Sequence[RpcCall]) -> list[Answer]:
        """Returns the answers. If the request is slow, sends it a second time (hedging)."""
        seconds = endpoint.hedge_seconds()
        spent = self.counters.hedges < MAX_HEDGED_SHARE * self.counters.requests
        if seconds is None or not spent or not all(map(is_repeatable, calls)):
            return endpoint.exchange(calls)
        first = _in_thread(lambda: endpoint.exchange(calls))
        if wait([first], timeout=seconds).done:
            return first.result()
        other = self._choose(_Part((), last=endpoint))
        self.counters.add(hedges=1)
        second = _in_thread(lambda: other.exchange(calls))
        done, _ = wait([first, second], return_when=FIRST_COMPLETED)
        good = [item for item in done if item.exception() is None]
        return (good or [first if first not in done else second])[0].result()

    def _answered(
        self, part: _Part, mine: Sequence[RpcCall], endpoint: Endpoint, found: list[Answer]
    ) -> _Outcome:
        """Stores answers. Schedules retries of calls that are missing, rate-limited or lagging."""
        outcome = _Outcome()
        limited, missing, elsewhere = [], [], []
        for index, call, answer in zip(part.indices, mine, found, strict=True):
            if answer is MISSING:
                missing.append(index)
            elif is_limited(answer):
                limited.append(index)
            elif self._may_be_elsewhere(part, call, answer):
                elsewhere.append(index)
            else:
                outcome.answers[index] = answer
        for indices, reason, seconds in (
            (limited, "rate limit exceeded", self._backoff(part)),
            (missing, "the answer to a batch is incomplete", 0.0),
            (elsewhere, "it does not know the block", BLOCK_RETRY_SECONDS * 2**part.attempt),
        ):
            if indices:
                again = replace(part, indices=tuple(indices), reason=f"{endpoint.name}: {reason}")
                split = _split(again, mine, endpoint, 0.0) if indices is limited else []
                outcome.again += split or [_later(again, endpoint, seconds)]
        return outcome

    def _may_be_elsewhere(self, part: _Part, call: RpcCall, answer: Answer) -> bool:
        """Returns whether another server of the endpoint may know the block."""
        if call.optional or part.attempt >= min(BLOCK_RETRIES, self.options.retries):
            return False
        if answer is None and call.exists:
            return True
        return means_no_block(answer) or (part.attempt == 0 and means_no_state(answer))

    def _limited(
        self, part: _Part, mine: Sequence[RpcCall], endpoint: Endpoint, limit: Limited
    ) -> _Outcome:
        """Schedules a retry. Splits a batch that exceeds the rate limit.

        A batch that costs more than a second's quota would never succeed as a whole.
        """
        seconds = self._backoff(part) if limit.seconds is None else limit.seconds
        if len(self._all) > 1:
            endpoint.failed()
            seconds = 0.0 if any(not item.rests for item in self._all) else seconds
        failed = replace(part, reason=str(limit))
        if split := _split(failed, mine, endpoint, limit.seconds or 0.0):
            return _Outcome(again=split)
        again = _later(failed, endpoint, seconds)
        if part.attempt < 1 or len(mine) == 1:
            return _Outcome(again=[again])
        return _Outcome(again=_halves(again))

    def _refused_batch(
        self,
        part: _Part,
        calls: Sequence[RpcCall],
        endpoint: Endpoint,
        refusal: BatchRefused,
    ) -> _Outcome:
        """Schedules a retry without the optional calls or, if there are none, with smaller
        batches.
        """
        without = self._without_optional(part, calls, str(refusal))
        if without is not None and not refusal.about_size:
            return without
        limit = refusal.limit or (len(part.indices) + 1) // 2
        endpoint.batch_limit = min(endpoint.batch_limit, limit)
        return _Outcome(again=[replace(part, depth=part.depth + 1, reason=str(refusal))])

    def _without_optional(
        self, part: _Part, calls: Sequence[RpcCall], reason: str
    ) -> _Outcome | None:
        """Returns a retry without the optional calls, or None if there are no optional calls."""
        optional = [index for index in part.indices if calls[index].optional]
        if not optional:
            return None
        rest = tuple(index for index in part.indices if not calls[index].optional)
        again = replace(part, indices=rest, depth=part.depth + 1, reason=reason)
        answers = {index: RpcRefusal(NOT_ANSWERED, reason) for index in optional}
        return _Outcome(answers, [again] if rest else [])

    def _unreachable(
        self, part: _Part, calls: Sequence[RpcCall], endpoint: Endpoint, error: RpcUnreachable
    ) -> _Outcome:
        """Schedules a retry, on another URL if possible. A call that is not idempotent fails."""
        tried = part.attempt + 1
        if isinstance(error, NotConnected) and not self._connected and tried >= len(self._all):
            # if no URL has ever answered, the address is probably wrong
            raise ForkError(str(error))
        without = self._without_optional(part, calls, str(error))
        if without is not None:
            return without
        if error.status in CLIENT_ERRORS and len(self._all) == 1:
            refusal = RpcRefusal(error.status or 0, f"HTTP status {error.status}")
            return _Outcome(dict.fromkeys(part.indices, refusal))
        if not all(is_repeatable(calls[index]) for index in part.indices):
            raise ForkError(str(error))
        endpoint.failed()
        others = any(not item.rests for item in self._all)
        again = replace(part, reason=str(error))
        return _Outcome(again=[_later(again, endpoint, 0.0 if others else self._backoff(part))])

    def _backoff(self, part: _Part) -> float:
        """Returns the seconds before the next attempt: exponential backoff with jitter of 50 %."""
        whole: float = min(MAX_BACKOFF, self.options.backoff * 2**part.attempt)
        return whole * random.uniform(0.5, 1.0)


def _split(part: _Part, calls: Sequence[RpcCall], endpoint: Endpoint, delay: float) -> list[_Part]:
    """Splits a refused part into parts of at most half as many calls as were refused.

    ``calls``: the calls of the refused request. Returns nothing for a single call, or if there is
    no rate limit. The new parts wait ``delay`` seconds and for the rate limit, so the split does
    not count as an attempt.
    """
    if endpoint.bucket.rate <= 0 or len(calls) == 1:
        return []
    later = replace(_later(part, endpoint, delay), attempt=part.attempt)
    size = min(_calls_within_quota(calls, endpoint), (len(calls) + 1) // 2)
    return _parts_of(part.indices, later, size)


def _admitted(calls: Sequence[RpcCall], endpoint: Endpoint) -> int:
    """Returns how many of these calls may be sent together.

    All may, unless the endpoint throttles.
    """
    return _calls_within_quota(calls, endpoint) if endpoint.bucket.throttles else len(calls)


def _calls_within_quota(calls: Sequence[RpcCall], endpoint: Endpoint) -> int:
    """Returns how many of these calls fit into a share of a second's compute units."""
    units = compute_units(call.method for call in calls)
    if endpoint.bucket.rate <= 0 or not units:
        return len(calls)
    return max(1, int(len(calls) * QUOTA_SHARE * endpoint.bucket.rate / units))


def _parts_of(indices: Sequence[int], part: _Part, limit: int) -> list[_Part]:
    """Returns ``part`` with these indices, split according to the batch limit."""
    return [
        replace(part, indices=tuple(indices[at : at + limit]))
        for at in range(0, len(indices), limit)
    ]


def _later(part: _Part, endpoint: Endpoint, seconds: float) -> _Part:
    return replace(
        part,
        attempt=part.attempt + 1,
        depth=part.depth + 1,
        not_before=monotonic() + seconds,
        last=endpoint,
    )


def _halves(part: _Part) -> list[_Part]:
    return _parts_of(part.indices, part, (len(part.indices) + 1) // 2)


def _in_thread(work: Callable[[], Value]) -> Future[Value]:
    """Runs ``work`` in a daemon thread."""
    future: Future[Value] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="fastevm-fork", daemon=True).start()
    return future
