"""Tests that subscriptions, filters and log ranges agree with the canonical chain."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from eth_account import Account
from eth_utils import to_checksum_address

from fastevm.bench.node.launch import server_of
from fastevm.core.execution.types import Block
from fastevm.node import Mining, Node, dev_node
from fastevm.node.production import BlockAttributes, assemble_block
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Server
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

from .sockets import SocketClient

CHAIN_ID = 31_337
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
SENDER = Account.from_key(KEY).address
RECEIVER = "0x" + "11" * 20
ZERO = "0x" + "00" * 32
BLOCK_MS, SLICE_MS = 600, 100
# emits a log, then increments slot 0
LOGGER_CODE = "5f5fa05f546001015f5500"
LOGGER_INIT = f"0x6a{LOGGER_CODE}5f52600b6015f3"


class Harness:
    """A live node with WebSocket clients, and the next nonce of its first account."""

    def __init__(self, node: Node, server: Server, http: aiohttp.ClientSession) -> None:
        self.node = node
        self.server = server
        self.http = http
        self.nonce = 0
        self.logger = ""

    async def client(self) -> SocketClient:
        url = self.server.urls[0]
        return SocketClient(await self.http.ws_connect(url, max_msg_size=2**25))

    def sign(self, **fields: Any) -> str:
        """Signs the next transaction of the first account. Returns it as raw bytes in hex."""
        transaction = {
            "chainId": CHAIN_ID,
            "nonce": self.nonce,
            "gas": 100_000,
            "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 10**9,
            "value": 0,
            "data": "0x",
            **fields,
        }
        self.nonce += 1
        signed = Account.sign_transaction(transaction, KEY)
        return "0x" + signed.raw_transaction.hex().removeprefix("0x")

    def log(self) -> str:
        """Returns a signed transaction that calls the logger."""
        return self.sign(to=to_checksum_address(self.logger))

    async def deploy(self, client: SocketClient) -> None:
        """Deploys the logger and waits until it is canonical."""
        receipt = await client.result("eth_sendRawTransactionSync", self.sign(data=LOGGER_INIT))
        self.logger = receipt["contractAddress"]
        await self.sealed(client, receipt["transactionHash"])

    async def sealed(self, client: SocketClient, tx_hash: str) -> Any:
        """Waits for a receipt in a canonical block."""
        for _ in range(round(MAX_WAIT / 0.02)):
            receipt = await client.result("eth_getTransactionReceipt", tx_hash)
            if receipt and receipt["blockHash"] != ZERO:
                return receipt
            await asyncio.sleep(0.02)
        raise AssertionError("never sealed")


async def stand_on(node: Node, **limits: Any) -> Harness:
    server = server_of(node, "preconf/preconfirmed", limits=Limits(**limits), threads=2)
    await server.start()
    return Harness(node, server, aiohttp.ClientSession())


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = await stand_on(dev_node(block_time_ms=BLOCK_MS, slice_interval_ms=SLICE_MS))
    yield harness
    await harness.http.close()
    await harness.server.stop()


@pytest.fixture
async def unhurried() -> AsyncIterator[Harness]:
    """Provides a node with slices, whose block does not end during a test."""
    harness = await stand_on(dev_node(block_time_ms=UNHURRIED_MS, slice_interval_ms=SLICE_MS))
    yield harness
    await harness.http.close()
    await harness.server.stop()


@pytest.fixture
async def still() -> AsyncIterator[Harness]:
    """Provides a node that makes blocks only on demand."""
    harness = await stand_on(dev_node(mining=Mining.MANUAL))
    yield harness
    await harness.http.close()
    await harness.server.stop()


@pytest.mark.parametrize("name", ["pendingLogs", "logs"])
async def test_a_log_is_reported_when_pre_confirmed_and_again_when_canonical(
    harness: Harness, name: str
) -> None:
    client, caller = await harness.client(), await harness.client()
    await harness.deploy(caller)
    wanted = {"address": harness.logger, "fromBlock": "pending"}
    pending = await client.subscribe(name, wanted)
    canonical = await client.subscribe("logs", {"address": harness.logger})
    heads = await client.subscribe("newHeads")
    tx_hash = await caller.result("eth_sendRawTransaction", harness.log())
    reported: dict[str, list[Any]] = {pending: [], canonical: [], heads: []}
    while not reported[canonical]:
        name, result = await client.note()
        reported[name].append(result)
        assert name != canonical or reported[pending]
    (early,), (late,) = reported[pending], reported[canonical]
    assert early["transactionHash"] == tx_hash
    assert early["blockHash"] == ZERO
    assert late["blockHash"] in [head["hash"] for head in reported[heads]]
    assert {**early, "blockHash": late["blockHash"]} == late


async def test_pending_logs_of_a_node_without_slices_are_those_of_its_blocks(
    still: Harness,
) -> None:
    client, caller = await still.client(), await still.client()
    await caller.result("anvil_setCode", RECEIVER, "0x" + LOGGER_CODE)
    await client.subscribe("logs", {"address": RECEIVER, "fromBlock": "pending"})
    await caller.result("eth_sendRawTransaction", still.sign(to=RECEIVER))
    await client.silence()
    await caller.result("evm_mine")
    (log,) = await client.results(1)
    assert (log["blockNumber"], log["address"]) == ("0x1", RECEIVER)


async def test_a_subscription_delivers_what_its_own_batch_causes(still: Harness) -> None:
    client = await still.client()
    calls = [("eth_subscribe", ["newHeads"]), ("evm_mine", [])]
    await client.socket.send_str(
        json.dumps(
            [
                {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                for number, (method, params) in enumerate(calls)
            ]
        )
    )
    answers = await client.read()
    name, head = await client.note()
    assert (name, head["number"]) == (answers[0]["result"], "0x1")


async def test_the_slices_of_a_block_add_up_to_the_block(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    blocks = await client.subscribe("newFlashblocks")
    hashes = await client.subscribe("newFlashblockTransactions")
    heads = await client.subscribe("newHeads")
    reported: dict[str, list[Any]] = {blocks: [], hashes: [], heads: []}
    sent: list[str] = []

    async def send() -> None:
        while len(reported[heads]) < 3:
            sent.append(await caller.result("eth_sendRawTransaction", harness.sign(to=RECEIVER)))
            await asyncio.sleep(0.03)

    sending = asyncio.create_task(send())
    while len(reported[heads]) < 4 or len(reported[hashes]) < len(sent):
        name, result = await client.note()
        reported[name].append(result)
    await sending
    assert reported[hashes] == sent
    for head in reported[heads][1:]:
        of_block = [block for block in reported[blocks] if block["number"] == head["number"]]
        counts = [len(block["transactions"]) for block in of_block]
        assert counts == sorted(counts)
        assert all(block["hash"] == ZERO for block in of_block)
        sealed = await caller.result("eth_getBlockByHash", head["hash"], False)
        listed = [entry["hash"] for entry in of_block[-1]["transactions"]]
        assert listed == sealed["transactions"]
        for name in ("gasUsed", "logsBloom", "timestamp", "baseFeePerGas", "parentHash"):
            assert of_block[-1][name] == sealed[name]


async def test_a_submitted_transaction_is_answered_with_its_receipt_before_its_block(
    unhurried: Harness,
) -> None:
    client = await unhurried.client()
    for _ in range(5):
        raw = unhurried.sign(to=RECEIVER, value=1)
        receipt = await client.result("eth_sendRawTransactionSync", raw)
        assert (receipt["status"], receipt["blockNumber"]) == ("0x1", "0x1")
    assert await client.result("eth_blockNumber") == "0x0"


async def test_every_getter_serves_the_pre_confirmed_state(harness: Harness) -> None:
    client = await harness.client()
    created = await client.result("eth_sendRawTransactionSync", harness.sign(data=LOGGER_INIT))
    harness.logger = created["contractAddress"]
    logged = await client.result("eth_sendRawTransactionSync", harness.log())
    assert await client.result("eth_getCode", harness.logger, "pending") == "0x" + LOGGER_CODE
    slot = await client.result("eth_getStorageAt", harness.logger, "0x0", "pending")
    assert int(slot, 16) == 1
    proof = await client.result("eth_getProof", harness.logger, ["0x0"], "pending")
    assert proof["storageProof"][0]["value"] == "0x1"
    assert proof["nonce"] == "0x1"
    assert await client.result("eth_getTransactionCount", SENDER, "pending") == "0x2"
    entry = await client.result("eth_getTransactionByHash", logged["transactionHash"])
    receipt = await client.result("eth_getTransactionReceipt", logged["transactionHash"])
    # unless the block was sealed between the requests
    if entry["blockHash"] is None and receipt["blockHash"] == ZERO:
        receipts = await client.result("eth_getBlockReceipts", "pending")
        count = await client.result("eth_getBlockTransactionCountByNumber", "pending")
        if len(receipts) == int(count, 16) >= 2:
            assert receipt in receipts
    call = {"to": harness.logger}
    assert await client.result("eth_call", call, "pending") == "0x"
    sealed = await harness.sealed(client, logged["transactionHash"])
    assert anywhere(logged) == anywhere(sealed)


def anywhere(receipt: Any) -> Any:
    """Returns a receipt without the members that change when its block is sealed."""
    logs = [{**entry, "blockHash": None} for entry in receipt["logs"]]
    return {**receipt, "blockHash": None, "logs": logs, "preconfirmed": None}


async def test_a_range_up_to_pending_has_every_log_once_while_blocks_are_sealed(
    harness: Harness,
) -> None:
    client, caller = await harness.client(), await harness.client()
    await harness.deploy(caller)
    done = asyncio.Event()
    sent: list[str] = []

    async def send() -> None:
        while not done.is_set():
            sent.append(await caller.result("eth_sendRawTransaction", harness.log()))
            await asyncio.sleep(0.01)

    sending = asyncio.create_task(send())
    wanted = {"fromBlock": "0x0", "toBlock": "pending", "address": harness.logger}
    seen: list[tuple[str, str]] = []
    heads = set()
    while len(heads) <= 4:
        logs = await client.result("eth_getLogs", wanted)
        places = [(int(e["blockNumber"], 16), int(e["logIndex"], 16)) for e in logs]
        assert places == sorted(set(places)), "out of order, or twice"
        for number in {number for number, _ in places}:
            indices = [index for block, index in places if block == number]
            assert indices == list(range(len(indices))), "a log index is missing"
        now = [(e["transactionHash"], e["logIndex"]) for e in logs]
        assert now[: len(seen)] == seen, "a log has gone"
        seen = now
        heads.update(e["blockHash"] for e in logs)
        await asyncio.sleep(0.002)
    done.set()
    await sending
    await harness.sealed(client, sent[-1])
    logs = await client.result("eth_getLogs", wanted)
    assert sorted(e["transactionHash"] for e in logs) == sorted(sent)
    assert await client.result("eth_getLogs", {**wanted, "fromBlock": "pending"}) == []


async def test_polled_filters_tell_the_same_as_subscriptions(harness: Harness) -> None:
    client, caller = await harness.client(), await harness.client()
    await harness.deploy(caller)
    logs = await caller.result("eth_newFilter", {"address": harness.logger})
    blocks = await caller.result("eth_newBlockFilter")
    arrivals = await caller.result("eth_newPendingTransactionFilter")
    heads = await client.subscribe("newHeads")
    sent, polled_logs, polled_blocks, reported = [], [], [], []
    while len(reported) < 3:
        sent.append(await caller.result("eth_sendRawTransaction", harness.log()))
        name, head = await client.note()
        assert name == heads
        reported.append(head["hash"])
        polled_logs += await caller.result("eth_getFilterChanges", logs)
        polled_blocks += await caller.result("eth_getFilterChanges", blocks)
    await harness.sealed(caller, sent[-1])
    polled_logs += await caller.result("eth_getFilterChanges", logs)
    polled_blocks += await caller.result("eth_getFilterChanges", blocks)
    assert polled_logs == await caller.result("eth_getFilterLogs", logs) or polled_logs
    assert [entry["transactionHash"] for entry in polled_logs] == sent
    assert [block for block in polled_blocks if block in reported] == reported
    assert await caller.result("eth_getFilterChanges", arrivals) == sent


async def test_a_slice_in_hand_stays_as_it_is(harness: Harness) -> None:
    client = await harness.client()
    await client.result("eth_sendRawTransactionSync", harness.sign(to=RECEIVER, value=1))
    held = harness.node.pending()
    assert held is not None
    address = bytes.fromhex(RECEIVER[2:])
    before = (held.layer.balance(address), len(held.transactions), held.header, held.receipts)
    for _ in range(3):
        await client.result("eth_sendRawTransactionSync", harness.sign(to=RECEIVER, value=1))
    now = harness.node.pending()
    assert now is not None
    assert now.layer.balance(address) == before[0] + 3
    after = (held.layer.balance(address), len(held.transactions), held.header, held.receipts)
    assert after == before


async def test_a_pending_call_knows_the_hash_of_its_parent(unhurried: Harness) -> None:
    client = await unhurried.client()
    await client.result("eth_sendRawTransactionSync", unhurried.sign(to=RECEIVER, value=1))
    parent_hash = {RECEIVER: {"code": "0x6001430340" + "5f5260205ff3"}}
    reported = await client.result("eth_call", {"to": RECEIVER}, "pending", parent_hash)
    pending = await client.result("eth_getBlockByNumber", "pending", False)
    latest = await client.result("eth_getBlockByNumber", "latest", False)
    assert len(pending["transactions"]) == 1
    assert reported == pending["parentHash"] == latest["hash"]


async def test_a_call_sees_what_only_pre_confirmed_funds_allow(harness: Harness) -> None:
    client = await harness.client()
    fresh = Account.create().address
    receipt = await client.result(
        "eth_sendRawTransactionSync", harness.sign(to=fresh, value=10**18)
    )
    call = {"from": fresh, "to": RECEIVER, "value": hex(10**17)}
    assert await client.result("eth_estimateGas", call, "pending") == "0x5208"
    assert receipt["status"] == "0x1"


def rival(node: Node, parent: Block, transactions: list[Any], mark: int) -> Block:
    """Builds a block on ``parent`` outside the node, for a competing branch."""
    attributes = BlockAttributes(
        timestamp=parent.header.timestamp + 1, coinbase=bytes([mark]) * 20, prev_randao=bytes(32),
        parent_beacon_block_root=bytes(32),
    )  # fmt: skip
    block, _ = assemble_block(node.chain, parent, attributes, transactions)
    return block


async def test_a_longer_branch_takes_its_logs_back(still: Harness) -> None:
    client, caller, node = await still.client(), await still.client(), still.node
    raw = still.sign(data=LOGGER_INIT)
    tx_hash = await caller.result("eth_sendRawTransaction", raw)
    base = (await asyncio.to_thread(node.mine))[0]
    created = await caller.result("eth_getTransactionReceipt", tx_hash)
    still.logger = created["contractAddress"]
    logs = await client.subscribe("logs", {"address": still.logger})
    heads = await client.subscribe("newHeads")
    polled = await caller.result("eth_newFilter", {"address": still.logger})
    first = await caller.result("eth_sendRawTransaction", still.log())
    (old,) = await asyncio.to_thread(node.mine)
    reported = [await client.note(), await client.note()]
    (added,) = [result for name, result in reported if name == logs]
    assert added["transactionHash"] == first
    assert added["removed"] is False
    assert await caller.result("eth_getFilterChanges", polled) == [added]

    item = rival(node, base, [], 1)
    await asyncio.to_thread(node.add_block, item)
    two = rival(node, item, list(old.transactions), 2)
    await asyncio.to_thread(node.add_block, two)
    reported = [await client.note() for _ in range(4)]
    new_heads = [result["hash"] for name, result in reported if name == heads]
    assert new_heads == ["0x" + block.hash.hex() for block in (item, two)]
    removed, again = [result for name, result in reported if name == logs]
    assert removed == {**added, "removed": True}
    assert again["removed"] is False
    assert again["blockHash"] == "0x" + two.hash.hex()
    assert await caller.result("eth_getFilterChanges", polled) == [removed, again]
    receipt = await caller.result("eth_getTransactionReceipt", first)
    assert receipt["blockHash"] == "0x" + two.hash.hex()
    wanted = {"fromBlock": "0x0", "address": still.logger}
    assert await caller.result("eth_getLogs", wanted) == [again]


async def test_a_node_without_slices_serves_the_next_block_as_pending(still: Harness) -> None:
    client = await still.client()
    latest = await client.result("eth_getBlockByNumber", "latest", True)
    pending = await client.result("eth_getBlockByNumber", "pending", True)
    assert int(pending["number"], 16) == int(latest["number"], 16) + 1
    assert (pending["parentHash"], pending["transactions"]) == (latest["hash"], [])
    for method in ("eth_getBalance", "eth_getTransactionCount", "eth_getCode"):
        pending = await client.result(method, SENDER, "pending")
        assert pending == await client.result(method, SENDER, "latest")
    wanted = {"fromBlock": "pending", "toBlock": "pending"}
    assert await client.result("eth_getLogs", wanted) == []
    async with still.http.get(still.server.urls[0] + "/readyz") as response:
        assert response.status == 200


async def test_a_builder_that_stands_still_is_noticed() -> None:
    node = dev_node(block_time_ms=BLOCK_MS, slice_interval_ms=SLICE_MS)
    harness = await stand_on(node, pending_age=0.5)
    client = await harness.client()
    ready = harness.server.urls[0] + "/readyz"
    async with harness.http.get(ready) as response:
        assert response.status == 200
    await asyncio.to_thread(node.producer.stop)
    await asyncio.sleep(0.7)
    async with harness.http.get(ready) as response:
        assert response.status == 503
        assert (await response.json())["ready"] is False
    latest = await client.result("eth_getBlockByNumber", "latest", False)
    assert await client.result("eth_getBlockByNumber", "pending", False) == latest
    async with harness.http.get(harness.server.urls[0] + "/metrics") as response:
        text = await response.text()
    assert "fastevm_ready 0" in text
    assert "fastevm_pending_served 0" in text
    await harness.http.close()
    await harness.server.stop()


async def test_one_who_stops_reading_delays_neither_the_others_nor_the_slices() -> None:
    node = dev_node(block_time_ms=BLOCK_MS, slice_interval_ms=SLICE_MS)
    harness = await stand_on(node, outbound_messages=50, socket_send_time=1.0)
    caller, good, bad = await harness.client(), await harness.client(), await harness.client()
    await harness.deploy(caller)
    for client in (good, bad):
        await client.subscribe("newFlashblocks")
        await client.subscribe("newFlashblockTransactions", True)
    transport = bad.socket._conn.transport  # type: ignore[union-attr]
    transport.pause_reading()
    reported_before = harness.server.metrics.get("slices_told_total")
    made_before = node.metrics_registry.get("slices_total")
    sent, reported = [], 0
    while len(sent) < 300:
        sent += [await caller.result("eth_sendRawTransaction", harness.log()) for _ in range(10)]
        while reported < len(sent):
            _, result = await good.note()
            reported += "status" in result
    assert reported == 300
    made = node.metrics_registry.get("slices_total") - made_before
    assert harness.server.metrics.get("slices_told_total") - reported_before > made / 2
    await harness.http.close()
    await harness.server.stop()


async def test_who_watches_a_follower_sees_what_the_leader_makes(unhurried: Harness) -> None:
    leader = unhurried
    url = leader.server.urls[0]
    first = leader.node.chain.genesis.header.timestamp
    node = dev_node(
        block_time_ms=UNHURRIED_MS, slice_interval_ms=SLICE_MS, mining=Mining.NEVER, timestamp=first
    )
    node.follow(url, url.replace("http", "ws") + "/feed")
    follower = await stand_on(node)
    watcher, caller = await follower.client(), await leader.client()
    await watcher.subscribe("newFlashblockTransactions")
    async with asyncio.timeout(MAX_WAIT):
        while not node.metrics_registry.get("feed_connected"):
            await asyncio.sleep(0.02)
        # The follower may have connected in the middle of a block. It can execute the next one from
        # its start.
        await asyncio.to_thread(leader.node.mine)
        while node.pending() is None:
            await asyncio.sleep(0.02)
    sent = []
    for _ in range(12):
        raw = leader.sign(to=RECEIVER, value=1)
        sent.append(await caller.result("eth_sendRawTransaction", raw))
        await asyncio.sleep(0.05)
    assert await watcher.results(len(sent)) == sent
    await asyncio.to_thread(leader.node.mine)
    sealed = await leader.sealed(caller, sent[-1])
    assert await follower.sealed(watcher, sent[-1]) == sealed
    async with leader.http.get(follower.server.urls[0] + "/readyz") as response:
        assert response.status == 200
    await follower.http.close()
    await follower.server.stop()
