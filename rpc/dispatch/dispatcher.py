"""From a body to its answer: finds methods, decodes parameters, runs handlers where they belong.

What needs no thread and no waiting is answered at once, without a task of its own: `respond` gives
the answer itself, or something to await.
"""

import asyncio
import logging
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Final

from fastevm.errors import FastevmError
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.batch import Batch
from fastevm.rpc.dispatch.coalesce import Gathering
from fastevm.rpc.dispatch.envelope import (
    Call,
    Message,
    Refusal,
    encode_error,
    encode_result,
    head_of,
    parse_body,
    parse_params,
)
from fastevm.rpc.dispatch.registry import Method, Place
from fastevm.rpc.dispatch.workers import TooHeavy, Workers
from fastevm.rpc.errors import RpcError, wire_error
from fastevm.rpc.methods import METHODS
from fastevm.rpc.metrics import UNKNOWN_METHOD, Metrics
from fastevm.rpc.subscriptions.topics import Turn
from fastevm.simulate import Patience
from fastevm.wire.state_reads import StateReads

log: Final = logging.getLogger("fastevm.rpc")

# How long a method goes to the workers at once after one of its calls was stopped on the loop, in
# seconds: doubled from call to call as long as none ends in time there.
SHORTEST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0

# Bytes of a call, on average over its batch, beyond which it is not tried on the loop: reading it
# and writing its answer could take long, and cannot be stopped.
LIGHT_SIZE: Final = 4_096

LOOP: Final = Place.LOOP

Answering = Coroutine[Any, Any, bytes] | asyncio.Future[bytes]

Outcome = tuple[bytes | RpcError, float]  # the answer to a call and the seconds that it took


class Dispatcher:
    """Answers the bodies of one listener."""

    def __init__(self, context: Context, workers: Workers, metrics: Metrics) -> None:
        self.context = context
        self.workers = workers
        self.metrics = metrics
        self.patience = Patience()
        reads = {
            method.name: method.reads for method in METHODS.values() if method.reads is not None
        }
        self.reads = StateReads(reads, context.limits.batch_items)
        self.gathering = Gathering(context, self._gathered)
        self._pauses: dict[str, tuple[float, float]] = {}  # method -> (its end, its length)

    def close(self) -> None:
        """End what runs beside the loop."""
        self.patience.close()

    async def answer(self, body: bytes, turn: Turn | None = None) -> bytes:
        """Return the answer to ``body``; empty when it holds nothing but notifications.

        ``turn`` is the message's place in a WebSocket conversation; over HTTP there is none.
        """
        answer = self.respond(body, turn)
        return answer if isinstance(answer, bytes) else await answer

    def respond(self, body: bytes, turn: Turn | None = None) -> bytes | Answering:
        """Return the answer to ``body``, or what is to be awaited for it. See `answer`."""
        if self.reads.read(body):
            answer = self._read()
            if answer is not None:
                return answer
        parsed = parse_body(body)
        if isinstance(parsed, list):
            return Batch(self, parsed, turn, len(body) <= LIGHT_SIZE * len(parsed)).begin()
        if turn is None and type(parsed) is Call and parsed.method in self.gathering.names:
            return self.gathering.join(parsed)
        answer = self.here(parsed, turn, len(body) <= LIGHT_SIZE)
        if answer is not None:
            return answer
        assert isinstance(parsed, Call)
        return self.elsewhere(parsed, turn)

    def _gathered(self, call: Call) -> bytes | asyncio.Future[bytes]:
        """Answer a call of several that came together."""
        answer = self.here(call, None, is_small=True)
        return asyncio.ensure_future(self.elsewhere(call, None)) if answer is None else answer

    # --- where calls are made ---

    def here(self, message: Message, turn: Turn | None, is_small: bool) -> bytes | None:
        """Answer on the loop; None for a call that must be made elsewhere."""
        if type(message) is Refusal:
            return self.refuse(message)
        assert isinstance(message, Call)
        method = METHODS.get(message.method)
        started = perf_counter()
        result: bytes | RpcError | None
        try:
            if method is None:
                raise RpcError("method_not_found", method=message.method)
            place = method.place
            if place is LOOP:
                result = self._run(method, message)
            elif place is Place.LIGHT:
                result = self._try(method, message, started) if is_small else None
            elif place is Place.SMALL:
                result = self._run(method, message)
            elif place is Place.SOCKET:
                if turn is None:
                    raise RpcError("notifications_not_supported")
                result = self._run(method, message, turn)
            else:
                return None
        except RpcError as error:
            result = error
        except TooHeavy:
            return None
        if type(result) is bytes and message.id is not None:
            self.metrics.count(message.method, perf_counter() - started)
            return result
        if result is None:
            return None
        return self.settle(message, (result, perf_counter() - started))

    async def elsewhere(self, call: Call, turn: Turn | None) -> bytes:
        """Answer a call in a worker, or by a handler that waits."""
        method, started = METHODS[call.method], perf_counter()
        work = (
            self._wait(method, call)
            if method.place is Place.TASK
            else self.workers.run(self._run, method, call, heavy=method.is_heavy or call.lasts)
        )
        result: bytes | RpcError
        try:
            async with asyncio.timeout(self.context.limits.request_time):
                result = await work
        except TimeoutError:
            result = RpcError("timed_out")
        except RpcError as error:
            result = error
        return self.settle(call, (result, perf_counter() - started))

    def outcome(self, call: Call) -> Outcome:
        """Make a call in this thread, whichever it is."""
        started = perf_counter()
        result: bytes | RpcError
        try:
            result = self._run(METHODS[call.method], call)
        except RpcError as error:
            result = error
        return result, perf_counter() - started

    def settle(self, call: Call, outcome: Outcome) -> bytes:
        """Count a call that was made, and return its answer; nothing for a notification."""
        result, seconds = outcome
        name = call.method if call.method in METHODS else UNKNOWN_METHOD
        self.metrics.count(name, seconds)
        if not isinstance(result, bytes):
            result = self.refuse(Refusal(call.id or b"null", result), name)
        return b"" if call.id is None else result

    def refuse(self, refusal: Refusal, method: str = UNKNOWN_METHOD) -> bytes:
        """Count an error and return it as an answer."""
        error = wire_error(refusal.error, self.context.dialect)
        self.metrics.count_error(method, error["code"])
        return encode_error(refusal.id, error)

    def place_of(self, call: Call) -> Place:
        """Where a call is made; one of no method is refused on the loop."""
        method = METHODS.get(call.method)
        return Place.LOOP if method is None else method.place

    def is_heavy(self, calls: list[Call]) -> bool:
        """Whether any of the calls belongs into the heavy lane."""
        return any(call.lasts or METHODS[call.method].is_heavy for call in calls)

    # --- making them ---

    def _read(self) -> bytes | None:
        """Answer the plain reads that have just been understood; None where there is more to it."""
        context, reads, started = self.context, self.reads, perf_counter()
        latest = context.latest_view()
        pending = context.pending_view() if reads.wants_pending else None
        answer = reads.answer(
            latest.layer,
            latest.layer if pending is None else pending.layer,
            latest.block.number,
            context.node.config.chain_id,
            context.limits.batch_response_size,
        )
        if answer is not None:
            self.metrics.count_reads(reads.counts_by_method(), perf_counter() - started)
        return answer

    def _run(self, method: Method, call: Call, *turn: Turn) -> bytes:
        """Run a handler and encode its result, here or in a worker thread."""
        context, params = self.context, call.params
        try:
            if not isinstance(params, list):
                if method.direct is not None:
                    answer = method.direct(context, params, head_of(call.id or b"null"))
                    if answer is not None:
                        return answer
                params = parse_params(params)
            result = method.handler(context, *turn, *method.bind(params, context.dialect))
            return encode_result(call.id or b"null", result)
        except (RpcError, TooHeavy):
            raise
        except Exception as error:
            raise refused(method, error) from error

    async def _wait(self, method: Method, call: Call) -> bytes:
        """Run a handler that is a coroutine and encode its result."""
        try:
            args = method.bind(parse_params(call.params), self.context.dialect)
            result = await method.handler(self.context, *args)
            return encode_result(call.id or b"null", result)
        except RpcError:
            raise
        except Exception as error:
            raise refused(method, error) from error

    def _try(self, method: Method, call: Call, now: float) -> bytes | RpcError | None:
        """Run a handler on the loop for a short time; None when it does not end there."""
        pause = self._pauses.get(method.name)
        if pause is not None and now < pause[0]:
            return None
        result: bytes | RpcError
        try:
            result = self.patience.run(self._run, method, call)
        except RpcError as error:
            result = error
        if self.patience.is_out:
            call.lasts = True
            length = SHORTEST_PAUSE if pause is None else min(2 * pause[1], LONGEST_PAUSE)
            self._pauses[method.name] = (now + length, length)
            return None
        if pause is not None:
            del self._pauses[method.name]
        return result


def refused(method: Method, error: Exception) -> RpcError:
    """Return what a handler's exception is on the wire; a crash is logged and not shown."""
    if isinstance(error, FastevmError):
        return RpcError("server_error", str(error))
    log.error("handler of %s crashed", method.name, exc_info=error)
    return RpcError("handler_crashed")
