"""Tests that clients do not notice the warm-up, the requests that a server makes to itself."""

import asyncio
import logging

import pytest

from fastevm import simulate
from fastevm.node import Mining, Node, dev_node
from fastevm.rpc import warm_up as warming
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.transport import server as servers
from fastevm.rpc.transport.server import Listener, Server


def served(node: Node, seconds: float) -> Server:
    """Runs the server of a node for ``seconds``."""
    server = Server(node, simulate, [Listener(DIALECTS["geth"], port=0)])

    async def run() -> None:
        await server.start()
        try:
            await asyncio.sleep(seconds)
        finally:
            await server.stop()

    asyncio.run(run())
    return server


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Collects the bodies that dispatchers answer. The warm-up begins immediately."""
    bodies: list[bytes] = []
    answer = Dispatcher.answer

    async def noted(self: Dispatcher, body: bytes) -> object:
        bodies.append(body)
        found = await answer(self, body)
        assert b'"error"' not in found
        return found

    monkeypatch.setattr(Dispatcher, "answer", noted)
    monkeypatch.setattr(servers, "WARM_UP_AFTER", 0.0)
    return bodies


def test_its_requests_change_and_count_nothing(
    asked: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    node = dev_node(accounts=1, mining=Mining.INSTANT)
    head = node.chain.head
    server = served(node, 0.5)
    assert len(asked) == len(warming.requests_of(bytes(20)))
    assert node.chain.head is head
    assert not len(node.pool)
    assert "eth_estimateGas" not in server.metrics.render({})
    assert not caplog.records


def test_a_node_without_funds_starts_without_a_word(
    asked: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    served(dev_node(accounts=1, balance=0, mining=Mining.INSTANT), 0.5)
    assert asked
    assert not caplog.records


def test_a_node_that_stops_meanwhile_stops_at_once(asked: list[bytes]) -> None:
    served(dev_node(accounts=1, mining=Mining.INSTANT), 0.0)
    assert not asked


def test_a_node_that_pre_confirms_asks_itself_nothing(asked: list[bytes]) -> None:
    served(dev_node(accounts=1), 0.5)
    assert not asked
