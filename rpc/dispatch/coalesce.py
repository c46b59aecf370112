"""Coalesces calls of a method, so that shared work, such as sender recovery, is done once.

The calls are in the same batch, or arrive on several connections in the same loop iteration.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.envelope import Call, Message, parse_params
from fastevm.rpc.dispatch.registry import Method
from fastevm.rpc.dispatch.workers import NeedsWorker
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods import METHODS

GROUP: Final = 32  # calls that are prepared and answered in one iteration of the loop


def prepare(context: Context, messages: Sequence[Message]) -> None:
    """Prepare all calls that have the same method as the first call."""
    first = messages[0]
    method = METHODS.get(first.method) if type(first) is Call else None
    if method is None or method.prepare_many is None:
        return
    params = []
    for message in messages:
        if type(message) is Call and message.method == method.name:
            with suppress(RpcError):  # the error is reported when the call runs
                message.params = parse_params(message.params)
                params.append(message.params)
    with suppress(NeedsWorker):  # the worker that runs the call prepares it
        method.prepare_many(context, params)


class Coalescer:
    """Collects the single calls of a loop iteration and answers them in the next iteration.

    Answers are in the order of the calls. ``answer`` returns the answer to a call, or a future.
    """

    def __init__(
        self,
        context: Context,
        answer: Callable[[Call], bytes | asyncio.Future[bytes]],
        methods: Mapping[str, Method],
    ) -> None:
        self.context = context
        self.answer = answer
        # call, client, future of the answer
        self.waiting: list[tuple[Call, str, asyncio.Future[bytes]]] = []
        self.names = frozenset(name for name, method in methods.items() if method.prepare_many)

    def join(self, call: Call) -> asyncio.Future[bytes]:
        """Return a future of the answer. The call runs even if the future is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        if not self.waiting:
            loop.call_soon(self.go_on)
        self.waiting.append((call, CLIENT.get(), future))
        return future

    def go_on(self) -> None:
        """Answer the next `GROUP` of waiting calls."""
        group, self.waiting = self.waiting[:GROUP], self.waiting[GROUP:]
        if self.waiting:
            asyncio.get_running_loop().call_soon(self.go_on)
        if len(group) > 1:
            prepare(self.context, [call for call, _, _ in group])
        for call, client, future in group:
            CLIENT.set(client)
            answer = self.answer(call)
            if type(answer) is bytes:
                resolve(future, answer)
            else:
                answer.add_done_callback(ResultForwarder(future))  # type: ignore[union-attr]


class ResultForwarder:
    """Copies the result of one future to another."""

    def __init__(self, future: asyncio.Future[bytes]) -> None:
        self.future = future

    def __call__(self, done: Any) -> None:
        """Copy the outcome of ``done``. This is the callback of the first future."""
        if done.cancelled():
            self.future.cancel()
        elif done.exception() is not None:
            if not self.future.done():
                self.future.set_exception(done.exception())
        else:
            resolve(self.future, done.result())


def resolve(future: asyncio.Future[bytes], answer: bytes) -> None:
    """Set the result of a future unless it is already done, for example cancelled."""
    if not future.done():
        future.set_result(answer)
