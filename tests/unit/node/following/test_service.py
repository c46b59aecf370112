"""Tests that a follower reaches the state of the node that it follows after every failure."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp import web

from fastevm.bench.node.launch import server_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import InvalidTransaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.following import service
from fastevm.node.following.service import FEED_LONGEST_PAUSE, Backoff
from fastevm.rpc_types.feed import decode
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

BOB = b"\xb0" * 20


class Publisher:
    """A development node that serves JSON-RPC and the feed."""

    def __init__(
        self, port: int = 0, timestamp: int | None = None, block_time_ms: int = 500
    ) -> None:
        self.timestamp = int(time.time()) if timestamp is None else timestamp
        self.node = dev_node(
            accounts=3, block_time_ms=block_time_ms, slice_interval_ms=50, timestamp=self.timestamp
        )
        self.server = server_of(self.node, port=port, threads=1)
        self.nonce = 0

    @property
    def url(self) -> str:
        return self.server.urls[0]

    @property
    def feed(self) -> str:
        return self.url.replace("http", "ws") + "/feed"

    def payment(self) -> bytes:
        made = Transaction.build(
            to=BOB,
            value=1,
            gas_limit=21_000,
            chain_id=DEV_CHAIN_ID,
            nonce=self.nonce,
            max_fee_per_gas=10**10,
            max_priority_fee_per_gas=1,
        )
        self.nonce += 1
        return made.sign(self.node.accounts[0].private_key).raw


@pytest.fixture
async def publisher() -> AsyncIterator[Publisher]:
    made = Publisher()
    await made.server.start()
    yield made
    await made.server.stop()


def follower_of(publisher: Publisher, upstream: str | None = None) -> Node:
    node = dev_node(
        accounts=3,
        block_time_ms=500,
        slice_interval_ms=50,
        timestamp=publisher.timestamp,
        mining=Mining.NEVER,
    )
    node.follow(upstream or publisher.url, publisher.feed, poll_ms=30)
    node.follower.sync.first_pause = 0.1
    return node


@pytest.fixture
async def follower(publisher: Publisher) -> AsyncIterator[Node]:
    node = follower_of(publisher)
    await node.start()
    yield node
    await node.stop()


async def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + MAX_WAIT
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        await asyncio.sleep(0.01)


def same_chain(node: Node, other: Node) -> bool:
    """Returns whether both nodes have the parent of ``node``'s head, with equal receipts."""
    number = node.chain.head.number - 1
    mine, theirs = node.chain.canonical_hash(number), other.chain.canonical_hash(number)
    if number < 1 or mine is None or mine != theirs:
        return False
    return node.chain.receipts_of(mine) == other.chain.receipts_of(theirs)


async def test_a_transaction_is_pre_confirmed_at_the_follower() -> None:
    publisher = Publisher(block_time_ms=UNHURRIED_MS)
    await publisher.server.start()
    follower = follower_of(publisher)
    seen: list[bytes] = []
    follower.on_slice(
        lambda pending, first_new: seen.extend(t.hash for t in pending.transactions[first_new:])
    )
    await follower.start()
    try:
        await eventually(lambda: follower.metrics_registry.get("feed_connected"))
        # the follower connected during the first block, so it sees the next one from its start
        await asyncio.to_thread(publisher.node.mine)
        await eventually(lambda: follower.pending() is not None)
        tx_hash = await asyncio.to_thread(follower.submit, publisher.payment())
        await eventually(lambda: tx_hash in seen)
        assert follower.chain.locate(tx_hash) is None
        await asyncio.to_thread(publisher.node.mine, 2)
        await eventually(lambda: same_chain(publisher.node, follower))
        assert follower.chain.locate(tx_hash) is not None
        assert seen == [tx_hash]
    finally:
        await follower.stop()
        await publisher.server.stop()


async def test_what_the_upstream_refuses_is_refused(publisher: Publisher, follower: Node) -> None:
    await eventually(lambda: follower.pending() is not None)
    raw = publisher.payment()
    await asyncio.to_thread(publisher.node.submit, raw)
    await eventually(lambda: publisher.node.pool.confirmed_count or not publisher.node.pool)
    with pytest.raises(InvalidTransaction):
        publisher.nonce = 0
        other = Transaction.decode(publisher.payment())
        changed = Transaction.build(
            to=BOB, value=9, gas_limit=21_000, chain_id=DEV_CHAIN_ID, nonce=0,
            max_fee_per_gas=other.max_fee_per_gas, max_priority_fee_per_gas=1,
        )  # fmt: skip
        signed = changed.sign(publisher.node.accounts[0].private_key)
        await asyncio.to_thread(follower.submit, signed.raw)


async def test_every_fault_is_counted_and_survived(publisher: Publisher, follower: Node) -> None:
    hub, builder, metrics = publisher.node.feed, publisher.node.producer, follower.metrics_registry
    await eventually(lambda: follower.pending() is not None)

    def verdict(name: str) -> float:
        return metrics.get(f'feed_sequence_total{{verdict="{name}"}}')

    async def seen(*names: str) -> None:
        await eventually(lambda: any(verdict(name) for name in names))
        await eventually(lambda: follower.pending() is not None)

    hub.faults.duplicate = 1
    await seen("duplicate")
    hub.faults.drop = 1
    await seen("gap", "predecessor_mismatch")
    # the position of the swapped messages in the block decides which of these is counted
    disorder = ("gap", "predecessor_mismatch", "invalid_block")
    before = sum(map(verdict, disorder))
    hub.faults.reorder = 1
    await eventually(lambda: sum(map(verdict, disorder)) > before)
    hub.faults.delay = 0.2
    await eventually(lambda: follower.pending() is not None)
    await asyncio.to_thread(publisher.node.submit, publisher.payment())
    builder.faults.restart_block = True
    await seen("restart")
    async with asyncio.timeout(2 * MAX_WAIT):
        # Repeats if nothing was detected: a slow follower may have missed that slice.
        while not metrics.get("reconcile_mismatch_total"):
            builder.faults.seal_without_last = True
            await eventually(lambda: follower.pending() is not None)
            await asyncio.to_thread(publisher.node.submit, publisher.payment())
            await eventually(lambda: not (pool := publisher.node.pool) and not pool.confirmed_count)
    await eventually(lambda: same_chain(publisher.node, follower))
    await eventually(lambda: follower.pending() is not None)


async def test_a_websocket_upstream_announces_its_heads(publisher: Publisher) -> None:
    node = follower_of(publisher, publisher.url.replace("http", "ws"))
    node.follower.sync.poll_seconds = 30.0
    await node.start()
    try:
        await eventually(lambda: node.chain.head.number >= 3)
        await eventually(lambda: same_chain(publisher.node, node))
    finally:
        await node.stop()


async def test_blocks_without_raw_form_are_rebuilt_from_json(publisher: Publisher) -> None:
    for _ in range(3):
        await asyncio.to_thread(publisher.node.submit, publisher.payment())
    await eventually(lambda: publisher.node.chain.head.number >= 2)
    node = follower_of(publisher)
    node.follower.sync.block_import.raw_blocks = False
    await node.start()
    try:
        await eventually(lambda: same_chain(publisher.node, node))
    finally:
        await node.stop()


async def test_a_publisher_that_restarts_is_followed_again(
    publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    node = follower_of(publisher)
    await node.start()
    port = int(publisher.url.rsplit(":", 1)[1])
    try:
        await eventually(lambda: node.chain.head.number >= 3)
        await publisher.server.stop()
        await eventually(lambda: not any(node.connections.values()))
        again = Publisher(port, publisher.timestamp)
        await again.server.start()
        try:
            await eventually(lambda: same_chain(again.node, node))
            await eventually(lambda: node.pending() is not None)
            assert node.metrics_registry.get("feed_reconnects_total") >= 1
        finally:
            await again.server.stop()
    finally:
        await node.stop()
    reported = [record.getMessage() for record in caplog.records]
    assert any(text.startswith("feed: lost: ") for text in reported)
    for name in ("feed", "upstream"):
        assert any(text.startswith(f"{name}: connected again after ") for text in reported)


@pytest.mark.parametrize(("age", "kept"), [(0.0, True), (0.2, False)])
async def test_a_follower_that_loses_its_leader_keeps_what_was_pending_for_a_time(
    age: float, kept: bool
) -> None:
    publisher = Publisher(block_time_ms=UNHURRIED_MS)
    await publisher.server.start()
    node = follower_of(publisher)
    node.follower.sync.pending_age = age
    await node.start()
    try:
        await eventually(lambda: all(node.connections.values()))
        await asyncio.to_thread(publisher.node.mine)
        await eventually(lambda: node.pending() is not None)
        tx_hash = await asyncio.to_thread(node.submit, publisher.payment())
        await eventually(
            lambda: tx_hash in {transaction.hash for transaction in node.pending().transactions}
        )
        await publisher.server.stop()
        await eventually(lambda: not any(node.connections.values()))
        if kept:
            await asyncio.sleep(0.3)
            assert tx_hash in {transaction.hash for transaction in node.pending().transactions}
        else:
            await eventually(lambda: node.pending() is None)
    finally:
        await node.stop()


@pytest.mark.parametrize("speaks", [True, False])
async def test_a_feed_that_answers_no_ping_is_connected_again(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch, speaks: bool
) -> None:
    monkeypatch.setattr(service, "PING_SECONDS", 0.2)
    monkeypatch.setattr(service, "SILENCE_SECONDS", 60.0 if speaks else 0.3)
    connections = []

    async def mute(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=not speaks)
        await socket.prepare(request)
        connections.append(time.monotonic())
        if speaks:
            await socket.send_str("{}")
        async for _ in socket:
            pass
        return socket

    app = web.Application()
    app.router.add_get("/feed", mute)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    node = follower_of(publisher)
    node.follower.sync.feed_url = f"ws://127.0.0.1:{runner.addresses[0][1]}/feed"
    await node.start()
    try:
        await eventually(lambda: len(connections) >= 3)
        assert node.metrics_registry.get("feed_reconnects_total") >= 2
        assert bool(node.metrics_registry.get("feed_decode_errors_total")) == speaks
        assert node.pending() is None
    finally:
        await node.stop()
        await runner.cleanup()


async def test_a_reader_that_stops_reading_is_cut_off_and_nobody_else_notices(
    publisher: Publisher,
) -> None:
    slow = publisher.node.feed.open("", limit=9, address_limit=9)
    fast = 0
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(publisher.feed + "?compress=br") as socket,
    ):
        while publisher.node.feed.readers == 2 or fast < 100:
            message = await socket.receive(timeout=MAX_WAIT)
            assert message.type is aiohttp.WSMsgType.BINARY
            decode(message.data)
            fast += 1
    assert publisher.node.metrics_registry.get("feed_slow_readers_total") == 1
    slow.close()


async def test_the_age_of_the_head_counts_from_the_request(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, imported = follower_of(publisher), asyncio.Event()

    async def slow() -> bool:
        await asyncio.sleep(0.2)
        imported.set()
        return True

    monkeypatch.setattr(node.follower.sync.block_import, "follow_head", slow)
    await node.start()
    try:
        for _ in range(3):
            imported.clear()
            await asyncio.wait_for(imported.wait(), MAX_WAIT)
            assert node.upstream_age is not None and node.upstream_age >= 0.19
    finally:
        await node.stop()


def test_pauses_double_until_something_worked() -> None:
    backoff = Backoff()
    assert [backoff.pause() for _ in range(8)] == [0.25, 0.5, 1, 2, 4, 8, 10, 10]
    backoff.reset()
    assert backoff.pause() == 0.25


def test_pauses_become_short_when_their_limit_does() -> None:
    backoff = Backoff()
    for _ in range(6):
        backoff.pause()
    backoff.longest = FEED_LONGEST_PAUSE
    assert [backoff.pause() for _ in range(3)] == [0.8, 0.8, 0.8]


def test_pauses_of_the_feed_stay_below_a_second() -> None:
    backoff = Backoff(longest=FEED_LONGEST_PAUSE)
    assert [backoff.pause() for _ in range(4)] == [0.25, 0.5, 0.8, 0.8]
