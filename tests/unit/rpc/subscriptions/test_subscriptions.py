"""Tests subscriptions over a WebSocket: messages, order and recipients."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import server_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Log, Receipt
from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server
from tests.max_wait import MAX_WAIT
from tests.rpc.sockets import SocketClient as Client
from tests.unit.rpc.fakes import FakeNode, FakePending, FakeSimulator, chain_of, header
from tests.unit.rpc.test_logs import T1, T2, A, B, bloom_of, receipt

ZERO = "0x" + "00" * 32


def transaction(nonce: int) -> Transaction:
    return Transaction.build(sender=A, nonce=nonce, gas_price=1, gas_limit=21_000, to=B)


class Harness:
    """Serves a node in memory over WebSockets."""

    def __init__(self, node: FakeNode, server: Server, http: aiohttp.ClientSession) -> None:
        self.node = node
        self.server = server
        self.http = http

    async def client(self, dialect: int = 0) -> Client:
        return Client(await self.http.ws_connect(self.server.urls[dialect]))

    def count(self, name: str) -> int:
        return self.server.metrics.get(name)


async def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Waits until a condition holds. Raises TimeoutError after ``seconds``."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
async def make_harness() -> AsyncIterator[Any]:
    stands: list[Harness] = []

    async def make(**limits: Any) -> Harness:
        node = FakeNode(chain_of(3))
        options = {"simulator": FakeSimulator(), "limits": Limits(**limits), "threads": 1}
        server = server_of(node, "preconf", "geth", **options)
        await server.start()
        stands.append(Harness(node, server, aiohttp.ClientSession()))
        return stands[-1]

    yield make
    for harness in stands:
        await harness.http.close()
        await harness.server.stop()


@pytest.fixture
async def harness(make_harness: Any) -> Harness:
    return await make_harness()


def block_on(node: FakeNode, parent: Block, *logs: Log, extra: bytes = b"") -> Block:
    """Returns a child of ``parent`` with one transaction that emits the logs."""
    number = parent.number + 1
    made = header(number, parent_hash=parent.hash, logs_bloom=bloom_of(logs), extra_data=extra)
    block = Block(made, (transaction(number),))
    node.chain.receipts[block.hash] = (receipt(*logs),)
    return block


def slice_of(node: FakeNode, index: int, receipts: list[Receipt], new: int) -> FakePending:
    """Returns slice ``index`` of the head's child, with a transaction for each receipt.

    ``new``: number of transactions that the slice adds to its predecessor.
    """
    head = node.chain.head
    return FakePending(
        header=header(head.number + 1, parent_hash=head.hash),
        transactions=tuple(transaction(nonce) for nonce in range(len(receipts))),
        receipts=tuple(receipts),
        slice_index=index,
        first_new=len(receipts) - new,
    )


# --- the connection -----------------------------------------------------------------------------


async def test_every_method_works_over_a_socket(harness: Harness) -> None:
    client = await harness.client()
    assert await client.result("eth_chainId") == "0xc72dd9d5e883e"
    assert (await client.result("eth_getBlockByNumber", "latest", False))["number"] == "0x2"


async def test_a_batch_is_answered_in_order_and_may_subscribe(harness: Harness) -> None:
    client = await harness.client()
    calls = [
        {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber"},
        {"jsonrpc": "2.0", "method": "eth_blockNumber"},
        {"jsonrpc": "2.0", "id": "s", "method": "eth_subscribe", "params": ["newHeads"]},
        {"jsonrpc": "2.0", "id": 3, "method": "nope"},
    ]
    await client.socket.send_str(json.dumps(calls))
    answers = await client.read()
    assert [answer["id"] for answer in answers] == [1, "s", 3]
    assert answers[2]["error"]["code"] == -32601
    harness.node.chain.move(block_on(harness.node, harness.node.chain.head))
    assert (await client.note())[0] == answers[1]["result"]


async def test_binary_messages_are_read_too(harness: Harness) -> None:
    client = await harness.client()
    await client.socket.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}')
    assert (await client.read())["result"] == "0xc72dd9d5e883e"


async def test_calls_of_one_client_run_side_by_side(harness: Harness) -> None:
    client = await harness.client()
    for number in range(200):
        call = {"jsonrpc": "2.0", "id": number, "method": "eth_getBlockByNumber"}
        await client.socket.send_str(json.dumps({**call, "params": ["latest", False]}))
    assert {(await client.read())["id"] for _ in range(200)} == set(range(200))


@pytest.mark.parametrize("body", ["", "nonsense", "{", "[]", "5", '"x"', "\ud7ff", "[[[["])
async def test_bad_messages_are_answered_and_the_connection_lives(
    harness: Harness, body: str
) -> None:
    client = await harness.client()
    await client.socket.send_str(body)
    assert (await client.read())["error"]["code"] in (-32700, -32600)
    assert await client.result("eth_chainId")


async def test_a_message_over_the_limit_ends_the_connection(make_harness: Any) -> None:
    harness = await make_harness(body_size=1000)
    client = await harness.client()
    await client.socket.send_str("x" * 1001)
    message = await client.socket.receive(timeout=MAX_WAIT)
    assert message.type is aiohttp.WSMsgType.CLOSE
    assert message.data == aiohttp.WSCloseCode.MESSAGE_TOO_BIG
    assert (await (await harness.client()).result("eth_chainId")) == "0xc72dd9d5e883e"


async def test_connections_over_the_limit_are_refused(make_harness: Any) -> None:
    harness = await make_harness(sockets=1)
    first = await harness.client()
    with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
        await harness.client()
    assert harness.count("sockets_refused_total") == 1
    await first.socket.close()
    for _ in range(round(MAX_WAIT / 0.02)):
        if not await gauge(harness, "sockets"):
            break
        await asyncio.sleep(0.02)
    await harness.client()


async def test_the_server_pings_and_drops_who_does_not_answer(make_harness: Any) -> None:
    harness = await make_harness(socket_ping=0.1)
    mute = await harness.http.ws_connect(harness.server.urls[0], autoping=False)
    assert (await mute.receive(timeout=MAX_WAIT)).type is aiohttp.WSMsgType.PING
    for _ in range(round(MAX_WAIT / 0.02)):
        if not await gauge(harness, "sockets"):
            return
        await asyncio.sleep(0.02)
    raise AssertionError("still connected")


async def test_the_server_says_goodbye_when_it_stops(harness: Harness) -> None:
    client = await harness.client()
    reading = asyncio.create_task(client.socket.receive())
    await harness.server.stop()
    message = await asyncio.wait_for(reading, MAX_WAIT)
    assert message.type is aiohttp.WSMsgType.CLOSE
    assert message.data == aiohttp.WSCloseCode.GOING_AWAY


async def gauge(harness: Harness, name: str) -> float:
    async with harness.http.get(harness.server.urls[0] + "/metrics") as response:
        for line in (await response.text()).splitlines():
            if line.startswith(f"fastevm_{name} "):
                return float(line.split()[1])
    raise AssertionError(f"no gauge {name}")


# --- opening and ending -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "code", "message"),
    [
        ([], -32602, "expected subscription name as first argument"),
        ([5], -32602, "expected subscription name as first argument"),
        (["nope"], -32601, 'no "nope" subscription in eth namespace'),
        (["newHeads", True], -32602, "too many arguments, want at most 1"),
        (["newHeads", None, None], -32602, "too many arguments, want at most 2"),
        (["newPendingTransactions", 5], -32602, "invalid argument 1: json: cannot unmarshal"),
        (["newFlashblockTransactions", "x"], -32602, "invalid argument 1: json: cannot"),
        (["logs", "x"], -32602, "invalid argument 1: json: cannot unmarshal string"),
        (["logs", [{}]], -32602, "invalid argument 1: json: cannot unmarshal array"),
        (["logs", {"address": "0x1"}], -32602, "invalid argument 1: invalid address: hex"),
        (["logs", {"topics": [None] * 5}], -32602, "invalid argument 1: exceed max topics"),
        (["logs", {"topics": [[f"0x{n:064x}" for n in range(1001)]]}], -32000,
          "exceed max addresses or topics"),
    ],
)  # fmt: skip
async def test_a_bad_subscription_is_refused(
    harness: Harness, params: list[Any], code: int, message: str
) -> None:
    error = (await (await harness.client()).ask("eth_subscribe", *params))["error"]
    assert error["code"] == code
    assert error["message"].startswith(message)
    assert harness.server.hub.subscriptions == 0


@pytest.mark.parametrize("method", ["eth_subscribe", "eth_unsubscribe"])
async def test_there_are_no_subscriptions_over_http(harness: Harness, method: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": ["newHeads"]}
    async with harness.http.post(harness.server.urls[0], json=call) as response:
        error = (await response.json())["error"]
    assert error == {"code": -32601, "message": "notifications not supported"}


async def test_a_cancelled_subscription_is_silent(harness: Harness) -> None:
    client = await harness.client()
    first, second = await client.subscribe("newHeads"), await client.subscribe("newHeads")
    assert first != second
    assert await client.result("eth_unsubscribe", first) is True
    assert await client.result("eth_unsubscribe", first) is False
    harness.node.chain.move(block_on(harness.node, harness.node.chain.head))
    assert (await client.note())[0] == second
    await client.silence()


async def test_an_id_of_somebody_else_cannot_be_cancelled(harness: Harness) -> None:
    mine, other = await harness.client(1), await harness.client(1)
    subscription = await mine.subscribe("newHeads")
    answer = await other.ask("eth_unsubscribe", subscription)
    assert answer["error"] == {"code": -32000, "message": "subscription not found"}
    assert await mine.result("eth_unsubscribe", subscription) is True


async def test_a_client_that_leaves_leaves_nothing_behind(harness: Harness) -> None:
    client = await harness.client()
    await client.subscribe("newHeads")
    await client.subscribe("pendingLogs")
    assert harness.server.hub.subscriptions == 2
    await client.socket.close()
    await eventually(lambda: harness.server.hub.subscriptions == 0)


async def test_subscriptions_of_one_client_are_bounded(make_harness: Any) -> None:
    harness = await make_harness(subscriptions=2)
    client = await harness.client()
    await client.subscribe("newHeads")
    second = await client.subscribe("newHeads")
    error = (await client.ask("eth_subscribe", "newHeads"))["error"]
    assert error == {"code": -32005, "message": "too many subscriptions, limit 2"}
    await client.result("eth_unsubscribe", second)
    await client.subscribe("newHeads")


async def test_a_follower_that_has_caught_up_says_so_once(harness: Harness) -> None:
    harness.node.upstream_age = 0.1
    client = await harness.client()
    subscription = await client.subscribe("syncing")
    assert await client.note() == (subscription, False)
    await client.silence()


async def test_a_node_that_builds_its_chain_tells_nothing_about_syncing(harness: Harness) -> None:
    client = await harness.client(1)
    await client.subscribe("syncing")
    await client.silence()


async def test_a_follower_that_catches_up_does_not_claim_to_be_in_sync(harness: Harness) -> None:
    harness.node.upstream_age, harness.node.sync_state = 9.0, (1, 2, 30)
    client = await harness.client()
    await client.subscribe("syncing")
    await client.silence()


# --- canonical blocks ---------------------------------------------------------------------------


async def test_a_header_for_every_new_block(harness: Harness) -> None:
    client, chain = await harness.client(), harness.node.chain
    subscription = await client.subscribe("newHeads")
    first = block_on(harness.node, chain.head)
    second = block_on(harness.node, first)
    chain.move(first, second)
    reported = [await client.note(), await client.note()]
    assert [name for name, _ in reported] == [subscription] * 2
    assert [head["hash"] for _, head in reported] == [hex_bytes(first.hash), hex_bytes(second.hash)]
    assert reported[0][1]["number"] == "0x3"
    assert not {"transactions", "uncles", "size"} & set(reported[0][1])
    await client.silence()


async def test_logs_of_a_filter_one_per_message(harness: Harness) -> None:
    client, chain = await harness.client(), harness.node.chain
    everything = await client.subscribe("logs", {})
    some = await client.subscribe(
        "logs", {"address": hex_bytes(A), "topics": [None, hex_bytes(T2)]}
    )
    block = block_on(harness.node, chain.head, Log(A, (T1, T2), b"x"), Log(B, (T1, T2), b"y"))
    chain.move(block)
    reported = [await client.note() for _ in range(3)]
    assert sorted(name for name, _ in reported) == sorted([everything, everything, some])
    (entry,) = [entry for name, entry in reported if name == some]
    assert entry["data"] == hex_bytes(b"x")
    assert entry["logIndex"] == "0x0"
    assert entry["blockHash"] == hex_bytes(block.hash)
    assert entry["blockTimestamp"] == "0x1e"
    assert entry["removed"] is False
    await client.silence()


async def test_removed_logs_come_before_the_new_ones_and_backwards(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    fork = node.chain.head
    item = block_on(node, fork, Log(A, (), b"1"), Log(A, (), b"2"))
    two = block_on(node, item, Log(A, (), b"3"))
    await client.subscribe("logs", {"address": hex_bytes(A)})
    heads = await (other := await harness.client()).subscribe("newHeads")
    node.chain.move(item, two)
    new = block_on(node, fork, Log(A, (), b"4"), extra=b"other")
    newer = block_on(node, new, Log(A, (), b"5"), extra=b"other")
    newest = block_on(node, newer, extra=b"other")
    node.chain.move(new, newer, newest, remove=2)
    logs = await client.results(8)
    reported = [(bytes.fromhex(entry["data"][2:]).decode(), entry["removed"]) for entry in logs]
    assert reported == [
        ("1", False), ("2", False), ("3", False),
        ("3", True), ("2", True), ("1", True), ("4", False), ("5", False),
    ]  # fmt: skip
    assert {**logs[3], "removed": False} == logs[2]
    hashes = [(await other.note())[1]["hash"] for _ in range(5)]
    assert hashes == [hex_bytes(block.hash) for block in (item, two, new, newer, newest)]
    assert heads


async def test_pooled_transactions_as_hash_and_as_object(harness: Harness) -> None:
    client = await harness.client()
    hashes = await client.subscribe("newPendingTransactions")
    objects = await client.subscribe("newPendingTransactions", True)
    harness.node.take(transaction(7))
    reported = dict([await client.note(), await client.note()])
    assert reported[hashes] == hex_bytes(transaction(7).hash)
    assert reported[objects]["nonce"] == "0x7"
    assert reported[objects]["blockHash"] is None


# --- slices -------------------------------------------------------------------------------------


async def test_a_slice_tells_what_is_new_in_it_and_nothing_twice(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    hashes = await client.subscribe("newFlashblockTransactions")
    logs = await client.subscribe("pendingLogs", {"topics": [hex_bytes(T1)]})
    wanted, other = receipt(Log(A, (T1,), b"w")), receipt(Log(A, (T2,), b"o"))
    node.publish(slice_of(node, 0, [], 0))
    node.publish(slice_of(node, 1, [wanted, other], 2))
    node.publish(slice_of(node, 2, [wanted, other], 0))
    node.publish(slice_of(node, 3, [wanted, other, wanted], 1))
    reported = [await client.note() for _ in range(5)]
    assert [result for name, result in reported if name == hashes] == [
        hex_bytes(transaction(nonce).hash) for nonce in range(3)
    ]
    entries = [result for name, result in reported if name == logs]
    assert [(e["transactionIndex"], e["logIndex"]) for e in entries] == [
        ("0x0", "0x0"),
        ("0x2", "0x2"),
    ]
    assert all(entry["blockHash"] == ZERO and entry["removed"] is False for entry in entries)
    assert all(entry["blockNumber"] == "0x3" for entry in entries)
    await client.silence()


@pytest.mark.parametrize("argument", [[], [None], [True], ["x"], [{}]])
async def test_pending_logs_without_a_filter_are_all(harness: Harness, argument: list[Any]) -> None:
    client, node = await harness.client(), harness.node
    await client.subscribe("pendingLogs", *argument)
    node.publish(slice_of(node, 1, [receipt(Log(A, (), b"a"), Log(B, (), b"b"))], 1))
    assert [entry["data"] for entry in await client.results(2)] == [
        hex_bytes(b"a"),
        hex_bytes(b"b"),
    ]


async def test_withdrawn_logs_come_again_as_removed(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    reported = await client.subscribe("pendingLogs", {"includeRemoved": True})
    usual = await client.subscribe("pendingLogs", {})
    logs = [receipt(Log(A, (), bytes([number]))) for number in range(3)]
    node.publish(slice_of(node, 1, logs, 3))
    first = [await client.note() for _ in range(6)]
    sent = [log for name, log in first if name == reported]
    assert [log for name, log in first if name == usual] == sent
    # the block starts again with only the first transaction
    node.publish(slice_of(node, 0, logs[:1], 0))
    assert await client.results(2) == [log | {"removed": True} for log in sent[:0:-1]]
    await client.silence()
    # a slice that becomes canonical is not withdrawn
    block = block_on(node, node.chain.head, Log(A, (), b"\0"))
    node.chain.move(type(block)(block.header, (transaction(0),)))
    await client.silence()
    # a head on a different branch withdraws the pending block
    node.publish(slice_of(node, 1, logs, 3))
    again = [await client.note() for _ in range(6)]
    node.pending_block = None
    node.chain.move(block_on(node, node.chain.head), remove=1)
    removed = await client.results(3)
    assert removed == [log | {"removed": True} for name, log in again[::-1] if name == reported]
    await client.silence()


async def test_the_option_for_withdrawn_logs_is_a_boolean(harness: Harness) -> None:
    client = await harness.client()
    answer = await client.ask("eth_subscribe", "pendingLogs", {"includeRemoved": "yes"})
    assert answer["error"]["code"] == -32602


async def test_the_whole_block_with_every_slice(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    await client.subscribe("newFlashblocks")
    for index, count in enumerate((0, 2, 2, 5)):
        node.publish(slice_of(node, index, [receipt()] * count, 0))
    blocks = await client.results(4)
    assert [len(block["transactions"]) for block in blocks] == [0, 2, 2, 5]
    assert {block["number"] for block in blocks} == {"0x3"}
    assert {block["hash"] for block in blocks} == {ZERO}
    assert blocks[3] == await client.result("eth_getBlockByNumber", "pending", True)


async def test_a_block_that_begins_again_shows_its_own_transactions(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    await client.subscribe("newFlashblocks")
    node.publish(slice_of(node, 1, [receipt()] * 3, 3))
    again = slice_of(node, 0, [receipt()], 1)
    again.transactions = (transaction(9),)
    node.publish(again)
    first, second = await client.results(2)
    assert len(first["transactions"]) == 3
    assert [entry["nonce"] for entry in second["transactions"]] == ["0x9"]


async def test_new_transactions_with_their_outcome(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    every = await client.subscribe("newFlashblockTransactions", True)
    some = await client.subscribe("newFlashblockTransactions", {"address": hex_bytes(B)})
    first, second = receipt(Log(A, (), b"a")), receipt(Log(B, (T1,), b"b"))
    node.publish(slice_of(node, 1, [first, second], 2))
    reported = [await client.note() for _ in range(3)]
    entries = [entry for name, entry in reported if name == every]
    assert [entry for name, entry in reported if name == some] == entries[1:]
    assert [entry["nonce"] for entry in entries] == ["0x0", "0x1"]
    assert entries[1]["blockHash"] is None
    assert entries[1]["status"] == "0x1"
    assert entries[1]["gasUsed"] == "0x5208"
    assert entries[1]["contractAddress"] is None
    assert entries[1]["logs"][0]["logIndex"] == "0x1"
    assert {"cumulativeGasUsed", "logsBloom", "hash", "from"} <= set(entries[1])


# --- who reads too slowly -----------------------------------------------------------------------


MANY = 40_000  # logs of one transaction, about as many as 30 million gas pay for


async def test_the_logs_of_one_transaction_close_no_subscription(make_harness: Any) -> None:
    harness = await make_harness(outbound_messages=5)
    clients = [await harness.client() for _ in range(3)]
    node = harness.node
    for client in clients:
        await client.subscribe("pendingLogs")
        await client.subscribe("logs")
    logs = [Log(A, (T1,), number.to_bytes(4, "big")) for number in range(MANY)]
    node.publish(slice_of(node, 0, [receipt(*logs)], 1))
    node.chain.move(block_on(node, node.chain.head, *logs))
    for client in clients:
        reported = await client.results(2 * MANY)
        assert [int(entry["data"], 16) for entry in reported] == [*range(MANY)] * 2
    assert harness.count("subscriptions_closed_slow_total") == 0
    assert harness.count("notifications_total") == 6 * MANY
    await eventually(lambda: harness.server.hub.backlog.used == 0)


async def test_removed_logs_of_a_large_block_close_no_subscription(harness: Harness) -> None:
    client, node = await harness.client(), harness.node
    head = node.chain.head
    logs = [Log(A, (T1,), number.to_bytes(4, "big")) for number in range(MANY)]
    await client.subscribe("logs")
    node.chain.move(block_on(node, head, *logs))
    node.chain.move(block_on(node, head, *logs, extra=b"other"), remove=1)
    reported = [int(entry["data"], 16) for entry in await client.results(3 * MANY)]
    assert reported == [*range(MANY), *reversed(range(MANY)), *range(MANY)]


async def test_a_burst_of_transactions_closes_no_subscription(make_harness: Any) -> None:
    harness = await make_harness(outbound_messages=50)
    client, node = await harness.client(), harness.node
    await client.subscribe("newPendingTransactions")
    await client.subscribe("newPendingTransactions", True)
    for nonce in range(5_000):
        node.take(transaction(nonce))
    reported = await client.results(10_000)
    assert sum(isinstance(entry, str) for entry in reported) == 5_000


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        ({"outbound_messages": 5}, "its queue of 5 messages is full"),
        ({"outbound_size": 1_000}, "its queue of 1000 bytes is full"),
        ({"notifications_size": 1_000_000}, "the queues of all clients are full"),
    ],
    ids=["messages", "bytes", "all"],
)
async def test_a_full_queue_closes_the_subscription_and_says_why(
    make_harness: Any, limits: dict[str, int], cause: str
) -> None:
    harness = await make_harness(**limits, socket_send_time=60)
    good, bad = await two_readers(harness)
    hub = harness.server.hub
    index = 0
    while hub.subscriptions == 2:
        assert await tell_much(harness, index, good) == 10
        index += 1
    assert harness.count("subscriptions_closed_slow_total") == 1
    assert hub.backlog.used <= max(hub.backlog.limit, 2**20)
    bad.socket._conn.transport.resume_reading()
    reported = await bad.read()
    while "result" in reported["params"]:
        reported = await bad.read()
    assert reported["params"]["error"] == {
        "code": -32005,
        "message": f"subscription closed: the client reads too slowly, {cause}",
    }
    name = reported["params"]["subscription"]
    assert await bad.result("eth_unsubscribe", name) is False
    assert await tell_much(harness, index, good) == 10
    await eventually(lambda: hub.backlog.used == 0)


async def test_one_who_stops_reading_does_not_slow_the_other(make_harness: Any) -> None:
    harness = await make_harness(outbound_messages=20, socket_send_time=60)
    good, _ = await two_readers(harness)
    received = 0
    for index in range(120):
        received += await tell_much(harness, index, good)
    assert received == 1200
    assert harness.count("subscriptions_closed_slow_total") == 1
    assert harness.count("sockets_cut_off_total") == 0
    assert harness.server.hub.subscriptions == 1


async def test_one_who_takes_nothing_for_too_long_is_cut_off(make_harness: Any) -> None:
    harness = await make_harness(
        outbound_messages=10_000, outbound_size=2**30, socket_send_time=0.3
    )
    good, _ = await two_readers(harness)
    for index in range(120):  # until the socket's buffers are full
        await tell_much(harness, index, good)
        if harness.count("sockets_cut_off_total"):
            break
    await eventually(lambda: harness.count("sockets_cut_off_total") == 1)
    await eventually(lambda: harness.server.hub.subscriptions == 1)
    assert harness.count("subscriptions_closed_slow_total") == 0
    assert await tell_much(harness, 120, good) == 10


async def two_readers(harness: Harness) -> tuple[Client, Client]:
    """Returns a client that reads its messages, and a client that lets its buffers fill."""
    good, bad = await harness.client(), await harness.client()
    await bad.subscribe("pendingLogs")
    await good.subscribe("pendingLogs")
    bad.socket._conn.transport.pause_reading()
    return good, bad


async def tell_much(harness: Harness, index: int, reader: Client) -> int:
    """Publishes ten large logs. Returns how many of them the reader received."""
    big = [receipt(Log(A, (), bytes(20_000)))] * 10
    harness.node.publish(slice_of(harness.node, index, big, 10))
    return len(await asyncio.wait_for(reader.results(10), MAX_WAIT))


async def test_answers_wait_for_a_client_that_does_not_read_them(make_harness: Any) -> None:
    harness = await make_harness(outbound_messages=4, socket_calls=4, socket_send_time=60)
    client = await harness.client()
    transport = client.socket._conn.transport
    transport.pause_reading()
    name = "m" * 2000  # the error repeats the name: a cheap way to get large answers
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name})
    count = 5_000

    async def flood() -> None:
        for _ in range(count):
            await client.socket.send_str(call)

    flooding = asyncio.create_task(flood())
    await asyncio.sleep(1)
    counted = await gauge_sum(harness, "rpc_requests_total")
    assert counted < count, "the server went on answering a client that does not read"
    transport.resume_reading()
    for _ in range(count):
        assert (await client.read())["error"]["code"] == -32601
    await flooding


async def gauge_sum(harness: Harness, name: str) -> float:
    async with harness.http.get(harness.server.urls[0] + "/metrics") as response:
        lines = (await response.text()).splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"fastevm_{name}{{"))


async def test_lost_events_close_every_subscription(make_harness: Any) -> None:
    harness = await make_harness(event_queue=3)
    client, node = await harness.client(), harness.node
    await client.subscribe("newPendingTransactions")
    for nonce in range(10):  # without yielding to the loop
        node.take(transaction(nonce))
    message = await client.read()
    assert message["params"]["error"]["message"] == (
        "subscription closed: events were lost: more than 3 were queued"
    )
    assert harness.count("subscriptions_closed_overrun_total") == 1
    await client.subscribe("newPendingTransactions")
    node.take(transaction(99))
    assert await client.results(1) == [hex_bytes(transaction(99).hash)]
