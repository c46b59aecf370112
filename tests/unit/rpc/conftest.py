"""Provides a dispatcher over a node in memory."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fastevm.chain.logs import LogIndex
from fastevm.rpc.context import Context
from fastevm.rpc.dialect import DIALECTS, Dialect
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.dispatch.long_answer import pieces_of
from fastevm.rpc.dispatch.workers import Workers
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.limits import Limits
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.subscriptions.filters import Filters
from fastevm.rpc.subscriptions.hub import Hub
from fastevm.rpc.traffic import TrafficBudget

from .fakes import FakeNode, FakeSimulator, chain_of


class Caller:
    """Sends calls through a dispatcher and parses the answers."""

    def __init__(
        self, node: FakeNode, dialect: Dialect, limits: Limits, simulator: FakeSimulator
    ) -> None:
        self.node = node
        self.simulator = simulator
        metrics = Metrics()
        self.workers = Workers(threads=2, queue_limit=limits.work_queue)
        freshness = Freshness(node, metrics, limit=limits.pending_age)
        context = Context(
            node=node,
            dialect=dialect,
            limits=limits,
            simulator=simulator,
            client_version="fastevm/test",
            freshness=freshness,
            hub=Hub(node, limits, metrics, freshness),
            log_index=LogIndex(node.chain),
            filters=Filters(limit=limits.filters, lifetime=limits.filter_time),
            workers=self.workers,
            traffic=TrafficBudget(limits.traffic_size),
        )
        self.context = context
        self.dispatcher = Dispatcher(context, self.workers, metrics)

    async def send(self, body: bytes | str) -> Any:
        """Sends a raw body. Returns the parsed answer, or None if there is no answer."""
        raw = body.encode() if isinstance(body, str) else body
        answer = b"".join(pieces_of(await self.dispatcher.answer(raw)))
        return json.loads(answer) if answer else None

    async def ask(self, method: str, *params: Any) -> Any:
        """Makes a call. Returns the whole response object."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.send(json.dumps(request))

    async def result(self, method: str, *params: Any) -> Any:
        """Returns the result of a call. Fails if the call fails."""
        answer = await self.ask(method, *params)
        assert "error" not in answer, answer
        return answer["result"]

    async def error(self, method: str, *params: Any) -> tuple[int, str]:
        """Returns code and message of a call's error."""
        answer = await self.ask(method, *params)
        assert "result" not in answer, answer
        return answer["error"]["code"], answer["error"]["message"]


MakeCaller = Callable[..., Caller]


@pytest.fixture
def make_caller() -> Any:
    """Provides a factory of callers. Their workers end with the test."""
    made: list[Caller] = []

    def make(
        node: FakeNode | None = None,
        *,
        dialect: str = "preconf",
        receipts: str | None = None,
        develops: bool = False,
        simulator: FakeSimulator | None = None,
        **limits: Any,
    ) -> Caller:
        spoken = DIALECTS[dialect]
        if receipts is not None:
            spoken = spoken.with_receipts(receipts)
        if develops:
            spoken = spoken.of_development()
        caller = Caller(
            node or FakeNode(chain_of(3)), spoken, Limits(**limits), simulator or FakeSimulator()
        )
        made.append(caller)
        return caller

    yield make
    for caller in made:
        caller.workers.close()


@pytest.fixture
def caller(make_caller: MakeCaller) -> Caller:
    """Provides a caller on a chain of three empty blocks, in the default dialect."""
    return make_caller()
