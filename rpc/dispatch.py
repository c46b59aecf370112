"""From a body to its answer: finds methods, decodes parameters, runs handlers, answers batches."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, Final

from fastevm.errors import FastevmError
from rpc.context import Context
from rpc.envelope import (
    Call,
    Message,
    Refusal,
    encode_batch,
    encode_error,
    encode_result,
    parse_body,
    parse_params,
)
from rpc.errors import RpcError, wire_error
from rpc.methods import METHODS
from rpc.metrics import UNKNOWN_METHOD, Metrics
from rpc.registry import Method, Place
from rpc.topics import Turn
from rpc.workers import Workers

log: Final = logging.getLogger("fastevm.rpc")


class Dispatcher:
    """Answers the bodies of one listener."""

    def __init__(self, context: Context, workers: Workers, metrics: Metrics) -> None:
        self.context = context
        self.workers = workers
        self.metrics = metrics

    async def answer(self, body: bytes, turn: Turn | None = None) -> bytes:
        """Return the answer to ``body``; empty when it holds nothing but notifications.

        ``turn`` is the message's place in a WebSocket conversation; over HTTP there is none.
        """
        parsed = parse_body(body)
        if isinstance(parsed, list):
            return await self._answer_batch(parsed, turn)
        return await self._answer_message(parsed, turn) or b""

    async def _answer_batch(self, messages: list[Message], turn: Turn | None) -> bytes:
        limits = self.context.limits
        if len(messages) > limits.batch_items:
            refusal = Refusal(messages[0].id or b"null", RpcError("batch_too_large"))
            return encode_batch([self._refuse(refusal)])
        answers: list[bytes] = []
        size = 0
        for message in messages:
            if size > limits.batch_response_size and message.id is not None:
                answer: bytes | None = self._refuse(
                    Refusal(message.id, RpcError("response_too_large"))
                )
            else:
                answer = await self._answer_message(message, turn)
            if answer is not None:
                answers.append(answer)
                size += len(answer)
        return encode_batch(answers) if answers else b""

    async def _answer_message(self, message: Message, turn: Turn | None) -> bytes | None:
        if isinstance(message, Refusal):
            return self._refuse(message)
        method = METHODS.get(message.method)
        name = UNKNOWN_METHOD if method is None else message.method
        started = perf_counter()
        try:
            answer = await self._answer_call(method, message, turn)
        except RpcError as error:
            answer = self._refuse(Refusal(message.id or b"null", error), name)
        self.metrics.count(name, perf_counter() - started)
        return None if message.id is None else answer

    async def _answer_call(self, method: Method | None, call: Call, turn: Turn | None) -> bytes:
        if method is None:
            raise RpcError("method_not_found", method=call.method)
        if method.place is Place.SOCKET and turn is None:
            raise RpcError("notifications_not_supported")
        args = method.bind(parse_params(call.params), self.context.dialect)
        if method.place is Place.LOOP:
            return self._run(method, call, args)
        if method.place is Place.SOCKET:
            return self._run(method, call, [turn, *args])
        job = (
            self._task(method, call, args)
            if method.place is Place.TASK
            else (self.workers.run(self._run, method, call, args))
        )
        try:
            return await asyncio.wait_for(job, self.context.limits.request_time)
        except TimeoutError:
            raise RpcError("timed_out") from None

    async def _task(self, method: Method, call: Call, args: list[Any]) -> bytes:
        """Run a handler that is a coroutine and encode its result."""
        with refusals(method):
            result = await method.handler(self.context, *args)
            return encode_result(call.id or b"null", result)

    def _run(self, method: Method, call: Call, args: list[Any]) -> bytes:
        """Run a handler and encode its result, here or in a worker thread."""
        with refusals(method):
            return encode_result(call.id or b"null", method.handler(self.context, *args))

    def _refuse(self, refusal: Refusal, method: str = UNKNOWN_METHOD) -> bytes:
        error = wire_error(refusal.error, self.context.dialect)
        self.metrics.count_error(method, error["code"])
        return encode_error(refusal.id, error)


@contextmanager
def refusals(method: Method) -> Iterator[None]:
    """Turn what a handler raises into errors of the wire; a crash is logged and not shown."""
    try:
        yield
    except RpcError:
        raise
    except FastevmError as error:
        raise RpcError("server_error", str(error)) from error
    except Exception as error:
        log.exception("handler of %s crashed", method.name)
        raise RpcError("handler_crashed") from error
