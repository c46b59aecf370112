"""Answers batches. The calls run in order, short calls on the event loop.

Consecutive calls for workers run as one job. A batch gives up the loop after `LOOP_TIME`, so that
the loop handles other events, and a worker after `JOB_TIME`, so that the worker runs other jobs.
"""

import asyncio
from collections.abc import Coroutine
from time import perf_counter
from typing import Any, Final

from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.coalesce import GROUP, prepare
from fastevm.rpc.dispatch.envelope import Call, Message, Refusal, encode_batch
from fastevm.rpc.dispatch.registry import RunOn
from fastevm.rpc.dispatch.runner import CallRunner, Outcome, in_memory
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.dispatch.workers import is_stopped
from fastevm.rpc.errors import RpcError

# methods that a job of a batch may run
IN_WORKERS: Final = (RunOn.WORKER, RunOn.LIGHT, RunOn.SMALL)
LOOP_TIME: Final = 0.002  # seconds that a batch may keep the event loop
JOB_TIME: Final = 0.015  # seconds that a batch may keep a worker before other jobs run


class Batch:
    """The state of a batch that is being answered."""

    __slots__ = ("answers", "goes_elsewhere", "holding", "is_small", "limit", "messages",
                 "position", "prepared", "request", "runner", "size", "traffic")  # fmt: skip

    def __init__(
        self,
        runner: CallRunner,
        messages: list[Message],
        request: SocketRequest | None,
        is_small: bool,
    ) -> None:
        self.runner = runner
        self.messages = messages
        self.request = request
        self.is_small = is_small
        self.limit = runner.context.limits.batch_response_size
        self.answers: list[bytes] = []
        self.size = 0  # bytes of the answers
        self.traffic = runner.context.traffic
        self.holding = self.traffic.holding(CLIENT.get())
        self.position = 0  # index of the next message
        self.prepared = 0  # messages before this index are prepared
        # the next message must be answered in a worker, or by a coroutine
        self.goes_elsewhere = False

    def begin(self) -> bytes | Coroutine[Any, Any, bytes]:
        """Return the answer, or a coroutine that returns it."""
        return self.result() if self.work_here() else self.go_on()

    async def go_on(self) -> bytes:
        """Answer the remaining messages, alternating between a worker and the loop."""
        try:
            while True:
                if self.goes_elsewhere:
                    await self.work_elsewhere()
                else:
                    await asyncio.sleep(0)
                if self.work_here():
                    return self.result()
        finally:
            self.release()

    def result(self) -> bytes:
        """Return the JSON array of the answers; empty if all messages were notifications."""
        self.release()
        return encode_batch(self.answers) if self.answers else b""

    def release(self) -> None:
        """Release the memory of the answers from the traffic budget."""
        self.holding.hold(0)

    def work_here(self) -> bool:
        """Answer messages on the loop until one needs a worker, for at most `LOOP_TIME`.

        Returns whether all messages are answered.
        """
        messages, answers, limit = self.messages, self.answers, self.limit
        runner, request, is_small = self.runner, self.request, self.is_small
        on_loop = runner.on_loop
        has_room = self.traffic.has_room(self.holding.client)
        position, until = self.position, perf_counter() + LOOP_TIME
        self.goes_elsewhere = False
        while position < len(messages):
            message = messages[position]
            if position >= self.prepared:
                self.prepared = position + GROUP
                prepare(self.runner.context, messages[position : self.prepared])
            answer = (
                on_loop(message, request, is_small)
                if (has_room and self.size <= limit) or message.id is None
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
        if position == len(messages):
            return True
        self.count()
        return False

    async def work_elsewhere(self) -> None:
        """Run the next call, and the calls after it that fit into the same job, in a worker."""
        message = self.messages[self.position]
        assert isinstance(message, Call)
        if self.runner.run_on_of(message) is RunOn.TASK:
            self.add(in_memory(await self.runner.elsewhere(message), self.limit))
            return
        calls = self.calls_for_worker()
        outcomes: list[Outcome] = []
        try:
            async with asyncio.timeout(self.runner.context.limits.request_time):
                await self.runner.workers.run(
                    self.run_in_order,
                    calls,
                    outcomes,
                    long=self.runner.any_is_long(calls),
                    limited=True,
                )
        except TimeoutError:
            outcomes = [*outcomes, (RpcError("timed_out"), 0.0)][: len(calls)]
        except RpcError as error:  # the queue of the workers is full
            outcomes = [(error, 0.0)] * len(calls)
        for call, outcome in zip(calls, outcomes, strict=False):
            self.add(self.runner.finish(call, outcome))

    def calls_for_worker(self) -> list[Call]:
        """Return the next call and the calls directly after it that run in workers."""
        first = self.messages[self.position]
        assert isinstance(first, Call)
        calls = [first]
        for message in self.messages[self.position + 1 :]:
            if not isinstance(message, Call):
                break
            if self.runner.run_on_of(message) not in IN_WORKERS:
                break
            calls.append(message)
        return calls

    def run_in_order(self, calls: list[Call], outcomes: list[Outcome]) -> None:
        """Run calls one after another, in a worker, for at most `JOB_TIME` seconds.

        If the job is stopped and the interrupted call may be repeated, the next job repeats it.
        """
        started = perf_counter()
        size = self.size + sum(len(made) for made, _ in outcomes if isinstance(made, bytes))
        for position in range(len(outcomes), len(calls)):
            call = calls[position]
            if position % GROUP == 0:
                prepare(self.runner.context, calls[position : position + GROUP])
            outcome = self.runner.outcome(call)
            if is_stopped() and self.runner.run_on_of(call) is RunOn.LIGHT:
                return
            outcomes.append(outcome)
            if is_stopped():
                return
            if isinstance(outcome[0], bytes):
                size += len(outcome[0])
            if size > self.limit or perf_counter() - started > JOB_TIME:
                return

    def add(self, answer: bytes) -> None:
        """Add the answer to the current message (empty for a notification), then advance."""
        self.position += 1
        if answer:
            self.answers.append(answer)
            self.size += len(answer)

    def count(self) -> None:
        """Count the memory of the answers so far in the traffic budget."""
        self.holding.hold(self.size)

    def too_large(self, message: Message) -> bytes:
        """Return the error for a call whose answer makes the batch too large, or the traffic
        budget.
        """
        error = RpcError("response_too_large")
        if self.size <= self.limit:
            error = RpcError("batches_too_large", limit=self.traffic.limit)
        return self.runner.refuse(Refusal(message.id or b"null", error))
