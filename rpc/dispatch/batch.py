"""A batch: what the event loop can answer is answered there, the rest in few trips to a worker.

Calls are answered in their order, one after the other. The loop gets its turn after a while, and so
do other jobs.
"""

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from fastevm.rpc.dispatch.coalesce import GROUP, look_ahead
from fastevm.rpc.dispatch.envelope import Call, Message, Refusal, encode_batch
from fastevm.rpc.dispatch.registry import Place
from fastevm.rpc.errors import RpcError
from fastevm.rpc.subscriptions.topics import Turn

if TYPE_CHECKING:
    from fastevm.rpc.dispatch.dispatcher import Dispatcher, Outcome

IN_WORKERS: Final = (Place.WORKER, Place.LIGHT, Place.SMALL)  # where such calls may be made
LOOP_TIME: Final = 0.002  # seconds of one batch until others get their turn on the loop
TRIP_TIME: Final = 0.05  # seconds of one batch in a worker, until other jobs get theirs


class Batch:
    """A batch under way."""

    __slots__ = ("answers", "dispatcher", "goes_elsewhere", "is_small", "limit", "messages",
                 "position", "prepared", "size", "turn")  # fmt: skip

    def __init__(
        self,
        dispatcher: "Dispatcher",
        messages: list[Message],
        turn: Turn | None,
        is_small: bool,
    ) -> None:
        self.dispatcher = dispatcher
        self.messages = messages
        self.turn = turn
        self.is_small = is_small
        self.limit = dispatcher.context.limits.batch_response_size
        self.answers: list[bytes] = []
        self.size = 0
        self.position = 0  # of the next message
        self.prepared = 0  # messages that were looked at together
        self.goes_elsewhere = False  # the next one cannot be answered on the loop

    def begin(self) -> bytes | Coroutine[Any, Any, bytes]:
        """Return the answer, or what is to be awaited for it."""
        limit = self.dispatcher.context.limits.batch_items
        if len(self.messages) > limit:
            refusal = Refusal(self.messages[0].id or b"null", RpcError("batch_too_large"))
            return encode_batch([self.dispatcher.refuse(refusal)])
        return self.result() if self.work_here() else self.go_on()

    async def go_on(self) -> bytes:
        """Work elsewhere and here in turns, to the end."""
        while True:
            if self.goes_elsewhere:
                await self.work_elsewhere()
            else:
                await asyncio.sleep(0)
            if self.work_here():
                return self.result()

    def result(self) -> bytes:
        """Return the array of the answers; nothing when all messages were notifications."""
        return encode_batch(self.answers) if self.answers else b""

    def work_here(self) -> bool:
        """Answer on the loop as far as that goes; whether it went to the end."""
        messages, answers, limit = self.messages, self.answers, self.limit
        here, turn, is_small = self.dispatcher.here, self.turn, self.is_small
        position, until = self.position, perf_counter() + LOOP_TIME
        self.goes_elsewhere = False
        while position < len(messages):
            message = messages[position]
            if position >= self.prepared:
                self.prepared = position + GROUP
                look_ahead(self.dispatcher.context, messages[position : self.prepared])
            answer = (
                here(message, turn, is_small)
                if self.size <= limit or message.id is None
                else self.too_large(message)
            )
            if answer is None:
                self.goes_elsewhere = True
                break
            position += 1
            if answer:
                answers.append(answer)
                self.size += len(answer)
            if perf_counter() > until:
                break
        self.position = position
        return position == len(messages)

    async def work_elsewhere(self) -> None:
        """Answer the next message, and what follows it as far as a worker takes it along."""
        message = self.messages[self.position]
        assert isinstance(message, Call)
        if self.dispatcher.place_of(message) is Place.TASK:
            self.add(await self.dispatcher.elsewhere(message, self.turn))
            return
        calls = self.calls_together()
        outcomes: list[Outcome] = []
        try:
            async with asyncio.timeout(self.dispatcher.context.limits.request_time):
                await self.dispatcher.workers.run(
                    self.run_together, calls, outcomes, heavy=self.dispatcher.is_heavy(calls)
                )
        except TimeoutError:
            outcomes = [*outcomes, (RpcError("timed_out"), 0.0)][: len(calls)]
        except RpcError as error:  # no worker has room
            outcomes = [(error, 0.0)] * len(calls)
        for call, outcome in zip(calls, outcomes, strict=False):
            self.add(self.dispatcher.settle(call, outcome))

    def calls_together(self) -> list[Call]:
        """Return the calls from here on that are made in worker threads."""
        calls: list[Call] = []
        for message in self.messages[self.position :]:
            if not isinstance(message, Call):
                break
            if self.dispatcher.place_of(message) not in IN_WORKERS:
                break
            calls.append(message)
        return calls

    def run_together(self, calls: list[Call], outcomes: "list[Outcome]") -> None:
        """Make calls one after the other, in a worker, as long as one trip may take."""
        started, size = perf_counter(), self.size
        for position, call in enumerate(calls):
            if position % GROUP == 0:
                look_ahead(self.dispatcher.context, calls[position : position + GROUP])
            outcome = self.dispatcher.outcome(call)
            outcomes.append(outcome)
            if isinstance(outcome[0], bytes):
                size += len(outcome[0])
            if size > self.limit or perf_counter() - started > TRIP_TIME:
                return

    def add(self, answer: bytes) -> None:
        """Keep an answer (nothing of a notification) and turn to the next message."""
        self.position += 1
        if answer:
            self.answers.append(answer)
            self.size += len(answer)

    def too_large(self, message: Message) -> bytes:
        """Return what a call gets that has no room in the answer any more."""
        return self.dispatcher.refuse(
            Refusal(message.id or b"null", RpcError("response_too_large"))
        )
