"""Answers bodies: direct reads, single calls, batches and coalesced calls.

Requests that need no thread are answered immediately, without a task: `respond` returns either the
answer or an awaitable.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from time import perf_counter
from typing import Any

from fastevm.errors import StateNotKnown
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.batch import Batch
from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.coalesce import Coalescer
from fastevm.rpc.dispatch.envelope import EAGER_SIZE, Call, Message, Refusal, parse_body
from fastevm.rpc.dispatch.long_answer import Answer
from fastevm.rpc.dispatch.registry import Method
from fastevm.rpc.dispatch.runner import LIGHT_SIZE, CallRunner, in_memory
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.dispatch.workers import Workers
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods import METHODS
from fastevm.rpc.metrics import Metrics
from fastevm.rpc_types.state_reads import Read, StateReads

# Awaitables of an answer.
Answering = Coroutine[Any, Any, Answer] | Coroutine[Any, Any, bytes] | asyncio.Future[bytes]


class Dispatcher:
    """Answers the bodies of one listener. ``methods`` maps names to the served methods."""

    def __init__(
        self,
        context: Context,
        workers: Workers,
        metrics: Metrics,
        methods: Mapping[str, Method] = METHODS,
    ) -> None:
        self.context = context
        self.workers = workers
        self.metrics = metrics
        self.runner = CallRunner(context, workers, metrics, methods)
        reads = {
            method.name: method.reads for method in methods.values() if method.reads is not None
        }
        if context.dialect.receipts_of_slices:  # the handler adds pre-confirmed transactions
            reads = {name: read for name, read in reads.items() if read is not Read.NONCE}
        self.batch_items = context.limits.batch_items
        self.reads = StateReads(reads, self.batch_items)
        self.coalescer = Coalescer(context, self._coalesced, methods)

    async def answer(
        self, body: bytes, request: SocketRequest | None = None, client: str = ""
    ) -> Answer:
        """Return the answer to ``body``; empty if it contains only notifications.

        ``request`` is the WebSocket message with this body, None over HTTP. Limits and queues count
        the request for ``client``.
        """
        answer = self.respond(body, client, request)
        return answer if isinstance(answer, bytes) else await answer

    def respond(
        self, body: bytes, client: str = "", request: SocketRequest | None = None
    ) -> bytes | Answering:
        """Return the answer to ``body``, or an awaitable that returns it. See `answer`."""
        if self.reads.read(body):
            answer = self._read()
            if answer is not None:
                return answer
        CLIENT.set(client)
        if len(body) > EAGER_SIZE:
            return self._respond_to_large(body, request)
        return self._respond_to(parse_body(body, self.batch_items), len(body), request)

    async def _respond_to_large(self, body: bytes, request: SocketRequest | None) -> Answer:
        """Answer a large body, which a worker thread parses."""
        try:
            parsed = await self.workers.run(parse_body, body, self.batch_items)
        except RpcError as error:  # too many requests are in progress
            return self.runner.refuse(Refusal(b"null", error))
        answer = self._respond_to(parsed, len(body), request)
        return answer if isinstance(answer, bytes) else await answer

    def _respond_to(
        self, parsed: Message | list[Message], size: int, request: SocketRequest | None
    ) -> bytes | Answering:
        """Return the answer to a body of ``size`` bytes, or an awaitable that returns it."""
        if isinstance(parsed, list):
            is_small = size <= LIGHT_SIZE * len(parsed)
            return Batch(self.runner, parsed, request, is_small).begin()
        if request is None and type(parsed) is Call and parsed.method in self.coalescer.names:
            return self.coalescer.join(parsed)
        answer = self.runner.on_loop(parsed, request, size <= LIGHT_SIZE)
        if answer is not None:
            return answer
        assert isinstance(parsed, Call)
        return self.runner.elsewhere(parsed)

    def _coalesced(self, call: Call) -> bytes | asyncio.Future[bytes]:
        """Answer one of several coalesced calls."""
        answer = self.runner.on_loop(call, None, is_small=True)
        return asyncio.ensure_future(self._elsewhere(call)) if answer is None else answer

    async def _elsewhere(self, call: Call) -> bytes:
        return in_memory(await self.runner.elsewhere(call), self.context.limits.batch_response_size)

    def _read(self) -> bytes | None:
        """Return the answer to the request that ``reads`` has just parsed.

        Returns None if a handler must answer the request.
        """
        context, reads, started = self.context, self.reads, perf_counter()
        latest = context.latest_view()
        try:
            pending = context.pending_view() if reads.wants_pending else None
        # a value must be fetched from the fork's upstream, which a handler does in a worker
        except StateNotKnown:
            return None
        newest = latest.layer if pending is None else pending.layer
        if reads.wants_next_nonce and context.node.pool.is_ahead_of(newest):
            return None
        answer = reads.answer(
            latest.layer,
            newest,
            latest.block.number,
            context.node.config.chain_id,
            context.limits.batch_response_size,
        )
        if answer is not None:
            self.metrics.count_reads(reads.counts_by_method(), perf_counter() - started)
        return answer
