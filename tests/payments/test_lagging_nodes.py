"""Tests nodes behind a load balancer, where any node may answer and one lags by some blocks."""

import contextlib
import itertools
import json
import random
from typing import Any

import pytest

from fastevm.payments import Merchant, MovementState, NodeClient, State
from fastevm.payments.errors import NodeBehind
from fastevm.payments.node import HttpTransport
from fastevm.payments.orders import Progress
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market


class Lagging(HttpTransport):
    """A connection that answers some requests as if the newest ``late`` blocks did not exist.

    ``behind`` or the sequence ``choices`` determines which requests.
    """

    def __init__(self, url: str, market: Market, choices: list[bool] | None = None) -> None:
        super().__init__(url)
        self.market, self.late, self.behind = market, 1, False
        self._choices = itertools.cycle(choices) if choices else None

    async def send(self, body: bytes) -> bytes:
        answer = await super().send(body)
        behind = next(self._choices) if self._choices else self.behind
        if not behind:
            return answer
        asked, answers = json.loads(body), json.loads(answer)
        single = isinstance(asked, dict)
        pairs = zip([asked] if single else asked, [answers] if single else answers, strict=True)
        late = [await self._late(*pair) for pair in pairs]
        return json.dumps(late[0] if single else late).encode()

    async def _late(self, asked: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
        head = self.market.node.chain.head.number - self.late
        method, params = asked["method"], asked["params"]
        result = answers.get("result")
        if method == "eth_getBlockByNumber" and params[0] in ("latest", "pending"):
            again = {**asked, "params": [hex(head), params[1]]}
            return json.loads(await super().send(json.dumps(again).encode()))
        if method in ("eth_getBlockByNumber", "eth_getTransactionReceipt") and result:
            number = int(result.get("number") or result["blockNumber"], 16)
            return {**answers, "result": None} if number > head else answers
        if method == "eth_getLogs":
            kept = [item for item in result if int(item["blockNumber"], 16) <= head]
            return {**answers, "result": kept}
        return answers


async def behind(market: Market, choices: list[bool] | None = None) -> tuple[Merchant, Lagging]:
    transport = Lagging(market.server.urls[0], market, choices)
    client = NodeClient(transport)
    market.clients.append(client)
    return market.merchant(node=client), transport


async def test_a_node_that_is_one_block_behind_takes_no_payment_back(still: Market) -> None:
    merchant, transport = await behind(still)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    transport.behind = True
    for late in (1, 2):
        transport.late = late
        for _ in range(3):
            await merchant.reconcile()
            assert (await merchant.order("order-1")).paid
            assert [entry.amount for entry in await merchant.ledger()] == [VALUE]
    assert merchant.metrics.value("node_behind_blocks") == 2
    assert "uncaptured" not in " ".join(entry.what for entry in await merchant.audit("order-1"))


async def test_a_capture_is_not_lost_because_a_node_has_not_seen_it(still: Market) -> None:
    merchant, transport = await behind(still)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    await merchant.reconcile()
    still.mine()
    transport.behind = True
    for _ in range(3):
        await merchant.reconcile()
        assert (await merchant.order("order-1")).state is State.CAPTURING
    transport.behind = False
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert len(await merchant.submissions("order-1")) == 1


async def test_whatever_node_answers_an_order_is_paid_once_and_stays_paid(still: Market) -> None:
    for number in range(3):
        # With a regular sequence, the same request of every pass might always reach the lagging
        # node.
        choices = random.Random(number).choices([True, False], k=997)
        merchant, _ = await behind(still, choices)
        name = f"order-{number}"
        await still.stored(merchant, name)
        await merchant.capture(name, until=State.CAPTURING)
        for _ in range(24):
            still.mine()
            try:
                await merchant.reconcile()
            except Exception as error:
                assert type(error).__name__ in ("NodeBehind", "ReorganisedMeanwhile")
        assert (await merchant.order(name)).paid
        undone = [entry for entry in await merchant.audit(name) if "reorganisation" in entry.what]
        assert undone == []
    assert [entry.amount for entry in await merchant.ledger()] == [VALUE] * 3


class Unindexed(HttpTransport):
    """A node that has not indexed some data: the methods in ``hidden`` return nothing."""

    def __init__(self, url: str, *hidden: str) -> None:
        super().__init__(url)
        self.hidden: tuple[str, ...] = hidden

    async def send(self, body: bytes) -> bytes:
        answer = await super().send(body)
        asked, answers = json.loads(body), json.loads(answer)
        single = isinstance(asked, dict)
        pairs = zip([asked] if single else asked, [answers] if single else answers, strict=True)
        shown = [
            {**item, "result": [] if call["method"] == "eth_getLogs" else None}
            if call["method"] in self.hidden
            else item
            for call, item in pairs
        ]
        return json.dumps(shown[0] if single else shown).encode()


RECEIPTS = ("eth_getTransactionReceipt",)
INDEXES = (*RECEIPTS, "eth_getTransactionByHash")


def unindexed(market: Market, *hidden: str) -> tuple[Merchant, Unindexed]:
    transport = Unindexed(market.server.urls[0], *hidden)
    client = NodeClient(transport)
    market.clients.append(client)
    return market.merchant(node=client), transport


@pytest.mark.parametrize("hidden", [RECEIPTS, INDEXES, (*INDEXES, "eth_getLogs")])
async def test_a_capture_is_not_lost_because_its_receipt_is_not_indexed(
    still: Market, hidden: tuple[str, ...]
) -> None:
    merchant, transport = unindexed(still)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    transport.hidden = hidden
    for _ in range(12):
        still.mine()
        with contextlib.suppress(NodeBehind):
            await merchant.reconcile()
        ends = [submission.progress for submission in await merchant.submissions("order-1")]
        assert Progress.LOST not in ends
        assert (await merchant.order("order-1")).state in (State.CAPTURING, State.CAPTURED)
    transport.hidden = ()
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert len(await merchant.submissions("order-1")) == 1


async def test_a_refund_is_not_lost_because_its_receipt_is_not_indexed(still: Market) -> None:
    merchant, transport = unindexed(still)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    await merchant.refund("order-1", VALUE // 4, refund_id="a", until=MovementState.REQUESTED)
    transport.hidden = (*INDEXES, "eth_getLogs")
    for _ in range(6):
        still.mine()
        await merchant.reconcile()
    (movement,) = await merchant.movements("order-1")
    assert movement.state is MovementState.REQUESTED
    transport.hidden = ()
    still.mine()
    await merchant.reconcile()
    assert [item.state for item in await merchant.movements("order-1")] == [MovementState.FINAL]


async def test_without_state_a_nonce_is_lost_after_a_time(
    still: Market, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the state of the block, a node cannot show which transaction used the nonce."""

    class Pruned(Unindexed):
        async def send(self, body: bytes) -> bytes:
            asked = json.loads(body)
            if isinstance(asked, dict) and asked["method"] == "eth_getTransactionCount":
                error = {"code": -32000, "message": "missing trie node"}
                return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}).encode()
            return await super().send(body)

    client = NodeClient(Pruned(still.server.urls[0]))
    still.clients.append(client)
    merchant = still.merchant(node=client)
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    (sent,) = await merchant.submissions("order-1")
    still.node.pool.drop(bytes.fromhex(sent.transaction_hash[2:]))
    still.send(still.shop, still.shop.address, b"")
    for _ in range(3):
        still.mine()
        await merchant.reconcile()
        assert (await merchant.order("order-1")).state is State.CAPTURING
    monkeypatch.setattr("fastevm.payments.transactions.LOST_SECONDS", 0.0)
    still.mine()
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.STORED
