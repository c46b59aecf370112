"""Tests polled filters: changes since the last poll, reorganisations, limits and timeouts."""

import asyncio
import json
import tracemalloc
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.load import batch_of, http, size_of
from fastevm.core.execution.types import Block, Log
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.envelope import EAGER_SIZE
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import Limits
from fastevm.rpc.log_filter import decode_filter
from fastevm.rpc.subscriptions import changes
from fastevm.rpc.subscriptions.changes import ChainFilter
from fastevm.rpc.subscriptions.filter_quota import WATCH_SIZE
from fastevm.rpc.subscriptions.filters import Filters
from fastevm.rpc.transport.server import Listener, Server
from fastevm.rpc_client.messages import request_body
from tests.max_wait import MAX_WAIT
from tests.rpc.sockets import SocketClient
from tests.unit.rpc.conftest import Caller, MakeCaller
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of
from tests.unit.rpc.test_logs import T1, T2, A, B

from .test_subscriptions import block_on, transaction


@pytest.fixture
def node() -> FakeNode:
    return FakeNode(chain_of(3))


@pytest.fixture
def client(make_caller: MakeCaller, node: FakeNode) -> Caller:
    return make_caller(node, logs=5)


async def data(client: Caller, filter_id: str) -> list[tuple[str, bool]]:
    logs = await client.result("eth_getFilterChanges", filter_id)
    return [(bytes.fromhex(e["data"][2:]).decode(), e["removed"]) for e in logs]


def extend(node: FakeNode, *contents: str, remove: int = 0, extra: bytes = b"") -> list[Block]:
    """Adds a block for each string, with a log of A for each letter."""
    parent, blocks = node.chain.blocks[len(node.chain.blocks) - remove - 1], []
    for content in contents:
        parent = block_on(
            node, parent, *(Log(A, (T1,), letter.encode()) for letter in content), extra=extra
        )
        blocks.append(parent)
    node.chain.move(*blocks, remove=remove)
    return blocks


async def test_new_blocks_once(client: Caller, node: FakeNode) -> None:
    installed = await client.result("eth_newBlockFilter")
    assert await client.result("eth_getFilterChanges", installed) == []
    blocks = extend(node, "", "", "")
    hashes = [hex_bytes(block.hash) for block in blocks]
    assert await client.result("eth_getFilterChanges", installed) == hashes
    assert await client.result("eth_getFilterChanges", installed) == []


async def test_blocks_of_a_new_branch(client: Caller, node: FakeNode) -> None:
    installed = await client.result("eth_newBlockFilter")
    extend(node, "", "")
    await client.result("eth_getFilterChanges", installed)
    blocks = extend(node, "", "", "", remove=2, extra=b"other")
    hashes = [hex_bytes(block.hash) for block in blocks]
    assert await client.result("eth_getFilterChanges", installed) == hashes


async def test_new_logs_once(client: Caller, node: FakeNode) -> None:
    extend(node, "o")
    installed = await client.result("eth_newFilter", {"address": hex_bytes(A)})
    assert await data(client, installed) == []
    extend(node, "a", "", "bc")
    assert await data(client, installed) == [("a", False), ("b", False), ("c", False)]
    assert await data(client, installed) == []


@pytest.mark.parametrize(
    "wanted", [{"address": hex_bytes(B)}, {"topics": [hex_bytes(T2)]}, {"fromBlock": "0x10"},
               {"fromBlock": "0x0", "toBlock": "0x2"}]
)  # fmt: skip
async def test_unwanted_logs_are_left_out(
    client: Caller, node: FakeNode, wanted: dict[str, Any]
) -> None:
    installed = await client.result("eth_newFilter", wanted)
    extend(node, "a", "b")
    assert await data(client, installed) == []


async def test_logs_that_left_the_chain_come_back_as_removed(
    client: Caller, node: FakeNode
) -> None:
    installed = await client.result("eth_newFilter", {})
    extend(node, "ab", "c")
    await data(client, installed)
    extend(node, "x", "y", "", remove=2, extra=b"other")
    assert await data(client, installed) == [
        ("c", True), ("b", True), ("a", True), ("x", False), ("y", False),
    ]  # fmt: skip
    assert await data(client, installed) == []


async def test_what_came_and_left_between_two_polls_is_not_reported(
    client: Caller, node: FakeNode
) -> None:
    installed = await client.result("eth_newFilter", {})
    extend(node, "a")
    extend(node, "x", "y", remove=1, extra=b"other")
    assert await data(client, installed) == [("x", False), ("y", False)]


async def test_a_long_answer_is_reported_in_parts(client: Caller, node: FakeNode) -> None:
    installed = await client.result("eth_newFilter", {})
    extend(node, "abc", "def", "ghi", "j")
    parts = [await data(client, installed) for _ in range(3)]
    reported = ["".join(letter for letter, _ in part) for part in parts]
    assert reported == ["abcdef", "ghij", ""]


async def test_all_logs_of_a_filter(client: Caller, node: FakeNode) -> None:
    extend(node, "ab")
    wanted = {"fromBlock": "0x0", "address": hex_bytes(A)}
    installed = await client.result("eth_newFilter", wanted)
    extend(node, "c")
    logs = await client.result("eth_getFilterLogs", installed)
    assert logs == await client.result("eth_getLogs", wanted)
    assert len(logs) == 3


async def test_pooled_transactions(client: Caller, node: FakeNode) -> None:
    client.context.hub.start()
    hashes = await client.result("eth_newPendingTransactionFilter")
    objects = await client.result("eth_newPendingTransactionFilter", True)
    waiting = {nonce: transaction(nonce) for nonce in (1, 2)}
    node.pool.ready[A] = waiting
    for entry in waiting.values():
        node.take(entry)
    node.take(transaction(3))  # the transaction leaves the pool before the poll
    reported = await client.result("eth_getFilterChanges", hashes)
    assert reported == [hex_bytes(transaction(nonce).hash) for nonce in (1, 2, 3)]
    full = await client.result("eth_getFilterChanges", objects)
    assert [entry["nonce"] for entry in full] == ["0x1", "0x2"]
    assert await client.result("eth_getFilterChanges", hashes) == []
    await client.context.hub.stop()


async def test_many_large_transactions_come_in_several_polls(
    client: Caller, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "ARRIVALS_SIZE", 1_000)
    client.context.hub.start()
    objects = await client.result("eth_newPendingTransactionFilter", True)
    node.pool.ready[A] = {nonce: transaction(nonce) for nonce in range(1, 8)}
    for entry in node.pool.ready[A].values():
        node.take(entry)
    polls = [await client.result("eth_getFilterChanges", objects) for _ in range(8)]
    assert [int(entry["nonce"], 16) for poll in polls for entry in poll] == list(range(1, 8))
    assert 1 < sum(map(bool, polls)) < 8
    await client.context.hub.stop()


async def test_an_uninstalled_filter_is_gone(client: Caller) -> None:
    installed = await client.result("eth_newBlockFilter")
    assert await client.result("eth_uninstallFilter", installed) is True
    assert await client.result("eth_uninstallFilter", installed) is False
    gone = (-32000, "filter not found")
    assert await client.error("eth_getFilterChanges", installed) == gone
    assert await client.error("eth_getFilterLogs", installed) == gone
    assert await client.error("eth_getFilterChanges", "0x1") == gone


async def test_only_filters_for_logs_have_logs(client: Caller) -> None:
    installed = await client.result("eth_newBlockFilter")
    assert await client.error("eth_getFilterLogs", installed) == (-32000, "filter not found")


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        ({"fromBlock": "0x5", "toBlock": "0x4"}, -32602, "invalid block range params"),
        ({"topics": [None] * 5}, -32602, "invalid argument 0: exceed max topics"),
    ],
)
async def test_a_bad_filter_is_refused(
    client: Caller, wanted: dict[str, Any], code: int, message: str
) -> None:
    assert await client.error("eth_newFilter", wanted) == (code, message)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_filter_that_nobody_polls_expires() -> None:
    clock = Clock()
    filters = Filters(limit=10, lifetime=300, clock=clock)
    polled, forgotten = filters.install(ChainFilter(b"1")), filters.install(ChainFilter(b"2"))
    clock.now = 200
    filters.use(polled)
    clock.now = 300
    with pytest.raises(RpcError, match="filter_not_found"):
        filters.use(forgotten)
    assert filters.use(polled).seen == b"1"
    clock.now = 700
    filters.install(ChainFilter(b"3"))
    assert len(filters) == 1


def test_the_number_of_filters_is_bounded_and_expired_ones_make_room() -> None:
    clock = Clock()
    filters = Filters(limit=3, lifetime=300, clock=clock)
    ids = [filters.install(ChainFilter(bytes([n]))) for n in range(3)]
    with pytest.raises(RpcError, match="too_many_filters"):
        filters.install(ChainFilter(b"x"))
    clock.now = 100
    filters.use(ids[0])
    clock.now = 350
    filters.install(ChainFilter(b"x"))
    assert len(filters) == 2
    assert filters.use(ids[0]).seen == b"\x00"


def test_a_client_does_not_shut_out_others() -> None:
    clock = Clock()
    filters = Filters(limit=5, client_limit=3, lifetime=300, clock=clock)

    def install(client: str) -> str:
        CLIENT.set(client)
        return filters.install(ChainFilter(b"x"))

    ids = [install("greedy") for _ in range(3)]
    with pytest.raises(RpcError, match="too_many_filters") as refused:
        install("greedy")
    assert refused.value.values == {"limit": 3}
    install("other")
    assert filters.drop(ids[0])
    assert not filters.drop(ids[0])
    install("greedy")
    clock.now = 100
    install("other")
    with pytest.raises(RpcError, match="too_many_filters") as refused:
        install("third")
    assert refused.value.values == {"limit": 5}
    clock.now = 350  # all filters except the last have expired
    for _ in range(3):
        install("greedy")
    assert len(filters) == 4


async def test_filters_count_for_the_address_that_asked_wherever_they_are_made() -> None:
    """Filters that are created in a batch or by a worker count for their client, too."""
    limits = Limits(client_filters=500)
    node = FakeNode(chain_of(3))
    server = Server(node, FakeSimulator(), [Listener(DIALECTS["geth"], port=0)], limits=limits)
    await server.start()
    large = {"address": ["0x" + "00" * 20] * 1_000, "topics": [["0x" + "00" * 32] * 500]}
    assert len(request_body("eth_newFilter", [large])) > EAGER_SIZE
    try:
        greedy = await Poster.connect(server, "127.0.0.2")
        other = await Poster.connect(server, "127.0.0.3")
        ours = batch_of([request_body("eth_newFilter", [large])] * 20)
        many = batch_of([request_body("eth_newFilter", [{}])] * 470)
        answering = [asyncio.create_task(greedy.ask(body)) for body in (ours, many)]
        for _ in range(100):
            await other.ask(request_body("eth_newBlockFilter"))
        await asyncio.gather(*answering)
        assert dict(server.filters._counts) == {"127.0.0.2": 490, "127.0.0.3": 100}
        refused = json.loads(await greedy.ask(batch_of([request_body("eth_newFilter", [{}])] * 11)))
        assert [item.get("error", {}).get("code") for item in refused] == [None] * 10 + [-32005]
        assert "result" in json.loads(await other.ask(request_body("eth_newBlockFilter")))
    finally:
        await server.stop()


def largest_filter(number: int) -> dict[str, Any]:
    """Returns a filter with the maximum number of distinct addresses and topics."""
    values = range(number * 1_000, (number + 1) * 1_000)
    topics = [[f"0x{value:064x}" for value in values]] * 4
    return {"address": [f"0x{value:040x}" for value in values], "topics": topics}


def test_what_a_filter_takes_is_counted() -> None:
    for wanted in (largest_filter(1), {"address": hex_bytes(A)}):
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        found = decode_filter(wanted)
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert taken <= WATCH_SIZE + found.memory < 2 * taken + 2 * WATCH_SIZE


async def test_the_memory_of_filters_and_subscriptions_is_bounded_together() -> None:
    limits = Limits(watch_size=3_000_000, address_watch_size=2_000_000)
    server = Server(
        FakeNode(chain_of(3)), FakeSimulator(), [Listener(DIALECTS["geth"], port=0)], limits=limits
    )
    await server.start()
    room = server.hub.room
    words = "filters and subscriptions%s fill the %d bytes that they may have"

    async def install(poster: Poster, number: int) -> Any:
        return json.loads(await poster.ask(request_body("eth_newFilter", [largest_filter(number)])))

    try:
        greedy = await Poster.connect(server, "127.0.0.2")
        ids = [(await install(greedy, number))["result"] for number in range(3)]
        error = {"code": -32005, "message": words % (" of one address", 2_000_000)}
        assert (await install(greedy, 4))["error"] == error
        async with aiohttp.ClientSession() as session:
            client = SocketClient(await session.ws_connect(server.urls[0]))
            for number in range(2):
                await client.result("eth_subscribe", "logs", largest_filter(number))
            asked = ["logs", largest_filter(3)]
            error = {"code": -32005, "message": words % ("", 3_000_000)}
            assert (await client.ask("eth_subscribe", *asked))["error"] == error
            dropped = json.loads(await greedy.ask(request_body("eth_uninstallFilter", [ids[0]])))
            assert dropped["result"] is True
            reported = await client.result("eth_subscribe", *asked)
            assert await client.result("eth_unsubscribe", reported) is True
        async with asyncio.timeout(MAX_WAIT):
            while "127.0.0.1" in room._by_address:
                await asyncio.sleep(0.01)
        assert room.used == room._by_address["127.0.0.2"] > 1_000_000
    finally:
        await server.stop()


class Poster:
    """An HTTP connection from a given loopback address. Each address counts as a client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.turn = asyncio.Lock()

    @classmethod
    async def connect(cls, server: Server, source: str) -> "Poster":
        host, port = server.urls[0].removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port), local_addr=(source, 0)))

    async def ask(self, body: bytes) -> bytes:
        async with self.turn:
            self.writer.write(http(body))
            head = await self.reader.readuntil(b"\r\n\r\n")
            return await self.reader.readexactly(size_of(head) - len(head))
