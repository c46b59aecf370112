"""Runs calls on the loop or in workers, counts them and encodes their results."""

import asyncio
import logging
from collections.abc import Mapping
from time import perf_counter, thread_time
from typing import Final

from fastevm.errors import FastevmError, StateNotKnown
from fastevm.rpc.before_fork import HeldUpstream, forwarded
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.envelope import (
    EAGER_SIZE,
    Call,
    Message,
    Refusal,
    encode_error,
    encode_result,
    head_of,
    parse_params,
)
from fastevm.rpc.dispatch.long_answer import Answer, LongAnswer
from fastevm.rpc.dispatch.registry import Method, Needs, RunOn
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.dispatch.workers import NeedsWorker, Workers, is_worker, released
from fastevm.rpc.errors import RpcError, wire_error
from fastevm.rpc.metrics import UNKNOWN_METHOD, Metrics

log: Final = logging.getLogger("fastevm.rpc")
NO_MEMORY: Final = "there is not enough memory for this request"

# After a call was stopped on the loop, all calls of its method run in workers for this many
# seconds. The pause doubles with each call that is stopped again. It does not apply to a client
# whose last call of this method was quick.
SHORTEST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 2.0
QUICK_TIME: Final = 0.0005  # processor seconds in a worker below which a call counts as quick
QUICK_CLIENTS: Final = 4_096  # clients remembered per method; a full set is cleared

# Largest average size in bytes of a batch's calls that are tried on the loop: decoding a call and
# encoding its answer could take long and cannot be stopped.
LIGHT_SIZE: Final = 4_096

# Largest params in bytes of a method that can run only on the loop. The params of the largest log
# filter have two thirds of this size.
SOCKET_PARAMS_SIZE: Final = 524_288

# Module-level aliases: reading a global is ten times faster than an enum member.
LOOP: Final = RunOn.LOOP
SMALL: Final = RunOn.SMALL
LIGHT: Final = RunOn.LIGHT
SOCKET: Final = RunOn.SOCKET
NOTHING: Final = Needs.NOTHING

Outcome = tuple[Answer | RpcError, float]  # answer or error of a call, and its duration in seconds


class CallRunner:
    """Runs the calls of one listener. ``methods`` maps names to the served methods."""

    def __init__(
        self,
        context: Context,
        workers: Workers,
        metrics: Metrics,
        methods: Mapping[str, Method],
    ) -> None:
        self.methods = methods
        self.context = context
        self.workers = workers
        self.metrics = metrics
        self.loop_budget = workers.loop_budget
        # method -> (end of the pause, its length in seconds)
        self._pauses: dict[str, tuple[float, float]] = {}
        self._quick: dict[str, set[str]] = {}  # method -> clients whose last call was quick

    # --- choice of the thread ---

    def on_loop(
        self, message: Message, request: SocketRequest | None, is_small: bool
    ) -> bytes | None:
        """Answer a message on the loop. Return None if the message must run elsewhere."""
        if type(message) is Refusal:
            return self.refuse(message)
        assert isinstance(message, Call)
        method = self.methods.get(message.method)
        started, is_tried = perf_counter(), False
        result: Answer | RpcError
        try:
            if method is None:
                raise RpcError("method_not_found", method=message.method)
            if method.needs is not NOTHING:
                method.check_needs(self.context.node)
            run_on = method.run_on
            if run_on is LOOP or run_on is SMALL or run_on is LIGHT:
                if type(message.params) is bytes and len(message.params) > EAGER_SIZE:
                    return None  # params this large take too long to decode here
                if run_on is not LIGHT:
                    result = self._run(method, message)
                elif not is_small or self._pauses_on_loop(message.method, started):
                    return None
                else:
                    is_tried = True
                    result = self.loop_budget.run(self._run, method, message)
            elif run_on is SOCKET:
                if request is None:
                    raise RpcError("notifications_not_supported")
                if len(message.params) > SOCKET_PARAMS_SIZE:
                    raise RpcError("invalid_params", f"params above {SOCKET_PARAMS_SIZE} bytes")
                result = self._run(method, message, request)
            else:
                return None
        except RpcError as error:
            result = error
        except NeedsWorker as need:
            message.is_long = need.is_long
            return None
        if is_tried and self._was_stopped(message.method, started):
            return None
        if type(result) is bytes and message.id is not None:
            self.metrics.count(message.method, perf_counter() - started)
            return result
        return self.finish(message, (result, perf_counter() - started))

    async def elsewhere(self, call: Call) -> Answer:
        """Answer a call in a worker, or by a coroutine handler."""
        method, started = self.methods[call.method], perf_counter()
        result: Answer | RpcError
        try:
            async with asyncio.timeout(self.context.limits.request_time):
                if method.run_on is RunOn.TASK:
                    result = await self._wait(method, call)
                else:
                    is_light = method.run_on is LIGHT
                    result = await self.workers.run(
                        self._run_light if is_light else self._run,
                        method,
                        call,
                        long=method.is_long_running or call.is_long,
                        limited=is_light,
                    )
        except TimeoutError:
            result = RpcError("timed_out")
        except RpcError as error:
            result = error
        seconds = perf_counter() - started
        if isinstance(result, LongAnswer):
            self.metrics.count(call.method, seconds)
            return b"" if call.id is None else result
        return self.finish(call, (result, seconds))

    def outcome(self, call: Call) -> Outcome:
        """Run a call of a batch in this worker, even if its method usually runs on the loop."""
        started, room = perf_counter(), self.context.limits.batch_response_size
        result: bytes | RpcError
        try:
            result = in_memory(self._run(self.methods[call.method], call), room)
        except RpcError as error:
            result = error
            released(result)
        return result, perf_counter() - started

    def finish(self, call: Call, outcome: Outcome) -> bytes:
        """Count a finished call and return its answer, which is empty for a notification."""
        result, seconds = outcome
        name = call.method if call.method in self.methods else UNKNOWN_METHOD
        self.metrics.count(name, seconds)
        if isinstance(result, LongAnswer):
            result = result.read()
        elif not isinstance(result, bytes):
            result = self.refuse(Refusal(call.id or b"null", result), name)
        return b"" if call.id is None else result

    def refuse(self, refusal: Refusal, method: str = UNKNOWN_METHOD) -> bytes:
        """Count the error and return its answer."""
        error = wire_error(refusal.error, self.context.dialect)
        self.metrics.count_error(method, error["code"])
        return encode_error(refusal.id, error)

    def run_on_of(self, call: Call) -> RunOn:
        """Return where a call runs. The loop refuses unknown methods."""
        method = self.methods.get(call.method)
        return LOOP if method is None else method.run_on

    def any_is_long(self, calls: list[Call]) -> bool:
        """Return whether any of the calls runs as a long job."""
        return any(call.is_long or self.methods[call.method].is_long_running for call in calls)

    # --- execution ---

    def _run(self, method: Method, call: Call, *request: SocketRequest) -> Answer:
        """Run a handler and encode its result, in the current thread."""
        context, params = self.context, call.params
        need: NeedsWorker | RpcError | None = None
        held = None
        try:
            if not isinstance(params, list):
                if method.direct is not None:
                    answer = method.direct(context, params, head_of(call.id or b"null"))
                    if answer is not None:
                        return answer
                params = parse_params(params)
            result = method.handler(context, *request, *method.bind(params, context.dialect))
            return encode_result(call.id or b"null", result)
        except NeedsWorker:
            raise
        except HeldUpstream as error:
            held = error
        except StateNotKnown as error:
            # A worker normally waits until missing state is fetched. A worker gets this error only
            # if the call reads the state of a block other than its own, and a retry would fail in
            # the same way.
            need = refused(method, error) if is_worker() else NeedsWorker(method.is_long_running)
        except Exception as error:
            need = refused(method, error)
        if held is not None:
            return self._run_upstream(method, call, held)
        assert need is not None
        # raised outside the except block, so that the exception does not keep the handler's frames
        # alive
        raise need

    def _run_light(self, method: Method, call: Call) -> Answer:
        """Run a handler in a worker, and record whether it was quick enough for the loop."""
        started = thread_time()
        answer = self._run(method, call)
        clients = self._quick.setdefault(method.name, set())
        if thread_time() - started < QUICK_TIME:
            if len(clients) >= QUICK_CLIENTS:
                clients.clear()
            clients.add(CLIENT.get())
        return answer

    def _run_upstream(self, method: Method, call: Call, held: HeldUpstream) -> Answer:
        """Answer a call from the upstream of a fork, in a worker thread."""
        history = self.context.node.history
        assert history is not None
        try:
            found = forwarded(history, method, parse_params(call.params), held)
            return encode_result(call.id or b"null", found)
        except NeedsWorker:
            raise
        except Exception as error:
            refusal = refused(method, error)
        raise refusal

    async def _wait(self, method: Method, call: Call) -> Answer:
        """Run a coroutine handler and encode its result."""
        try:
            args = method.bind(parse_params(call.params), self.context.dialect)
            result = await method.handler(self.context, *args)
            return encode_result(call.id or b"null", result)
        except Exception as error:
            refusal = refused(method, error)
        raise refusal

    def _pauses_on_loop(self, name: str, now: float) -> bool:
        """Return whether calls of a method currently run in a worker without trying the loop."""
        pause = self._pauses.get(name)
        if pause is None or now >= pause[0]:
            return False
        return CLIENT.get() not in self._quick.get(name, ())

    def _was_stopped(self, name: str, now: float) -> bool:
        """Return whether the loop stopped the call because its time was over.

        If so, start or extend the pause of the method.
        """
        pause = self._pauses.get(name)
        if self.loop_budget.is_spent:
            length = SHORTEST_PAUSE if pause is None else min(2 * pause[1], LONGEST_PAUSE)
            self._pauses[name] = (now + length, length)
            self._quick.get(name, set()).discard(CLIENT.get())
            return True
        if pause is not None:
            del self._pauses[name]
        return False


def in_memory(answer: Answer, room: int) -> bytes:
    """Return an answer as bytes, for callers that cannot send it in pieces.

    Raises RpcError if a part is in a file and the answer is larger than ``room`` bytes.
    """
    if isinstance(answer, bytes):
        return answer
    if answer.is_spooled and len(answer) > room:
        raise RpcError("response_too_large")
    return answer.read()


def refused(method: Method, error: Exception) -> RpcError:
    """Return the error that a client gets for a handler's exception, without its traceback.

    Logs unexpected exceptions. The client then sees only that the handler crashed.
    """
    if isinstance(error, RpcError):
        released(error)
        return error
    if isinstance(error, FastevmError):
        return RpcError("server_error", str(error))
    if isinstance(error, MemoryError):
        return RpcError("server_error", NO_MEMORY)
    log.error("handler of %s crashed", method.name, exc_info=error)
    return RpcError("handler_crashed")
