"""Tests that all ``stateChanges`` messages together give the state of the node."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastevm.node import Mining, dev_node
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

from .sockets import SocketClient
from .test_watching import (
    LOGGER_INIT,
    RECEIVER,
    SENDER,
    SLICE_MS,
    Harness,
    rival,
    stand_on,
)  # fmt: skip


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    harness = await stand_on(dev_node(block_time_ms=600, slice_interval_ms=100))
    yield harness
    await harness.http.close()
    await harness.server.stop()


class Mirror:
    """A copy of all accounts, updated only by the messages."""

    def __init__(self, client: SocketClient) -> None:
        self.client = client
        self.accounts: dict[str, dict[str, Any]] = {}
        self.positions: list[tuple[int, int]] = []

    async def read(self) -> Any:
        """Applies the next message and returns it."""
        _, change = await self.client.note()
        account = self.accounts.setdefault(change["address"], {"storage": {}})
        account.update(nonce=change["nonce"], balance=change["balance"])
        account["storage"].update(change["storage"])
        index = change["index"]
        self.positions.append((int(change["blockNumber"], 16), 10**6 if index is None else index))
        return change

    async def agrees(self, caller: SocketClient, address: str, tag: str) -> bool:
        """Returns whether the account has the same values on the node and in the copy."""
        account = self.accounts[address]
        if await caller.result("eth_getBalance", address, tag) != account["balance"]:
            return False
        if (
            int(await caller.result("eth_getTransactionCount", address, tag), 16)
            != account["nonce"]
        ):
            return False
        for slot, value in account["storage"].items():
            found = await caller.result("eth_getStorageAt", address, slot, tag)
            if int(found, 16) != int(value, 16):
                return False
        return True


async def test_changes_add_up_to_the_state_of_the_chain(harness: Harness) -> None:
    caller, client = await harness.client(), await harness.client()
    await harness.deploy(caller)
    mirror = Mirror(client)
    await client.subscribe("stateChanges", [harness.logger, SENDER, RECEIVER])
    last = ""
    for count in range(20):
        raw = harness.log() if count % 2 else harness.sign(to=RECEIVER, value=1)
        last = await caller.result("eth_sendRawTransaction", raw)
        await asyncio.sleep(0.05)
    async with asyncio.timeout(MAX_WAIT):
        while mirror.accounts.get(SENDER.lower(), {}).get("nonce") != harness.nonce:
            await mirror.read()
    await harness.sealed(caller, last)
    assert mirror.positions == sorted(mirror.positions)
    assert len(set(mirror.positions)) > 3
    for address in (harness.logger, SENDER.lower(), RECEIVER):
        assert await mirror.agrees(caller, address, "latest")
    assert mirror.accounts[harness.logger]["storage"] == {"0x0": "0xa"}


async def test_a_reorganisation_reports_what_the_new_chain_has() -> None:
    harness = await stand_on(dev_node(mining=Mining.MANUAL))
    caller, client, node = await harness.client(), await harness.client(), harness.node
    tx_hash = await caller.result("eth_sendRawTransaction", harness.sign(data=LOGGER_INIT))
    base = (await asyncio.to_thread(node.mine))[0]
    created = await caller.result("eth_getTransactionReceipt", tx_hash)
    harness.logger = created["contractAddress"]
    mirror = Mirror(client)
    await client.subscribe("stateChanges", [harness.logger, RECEIVER])
    await caller.result("eth_sendRawTransaction", harness.log())
    await caller.result("eth_sendRawTransaction", harness.sign(to=RECEIVER, value=7))
    await asyncio.to_thread(node.mine)
    changed = {(await mirror.read())["address"] for _ in range(2)}
    assert changed == {harness.logger, RECEIVER}
    item = rival(node, base, [], 1)
    await asyncio.to_thread(node.add_block, item)
    await asyncio.to_thread(node.add_block, rival(node, item, [], 2))
    back = [await mirror.read() for _ in range(2)]
    assert {change["address"]: change["storage"] for change in back} == {
        harness.logger: {"0x0": "0x0"},
        RECEIVER: {},
    }
    assert mirror.accounts[RECEIVER]["balance"] == "0x0"
    await harness.http.close()
    await harness.server.stop()


async def test_a_follower_reports_the_slices_of_its_leader_and_their_withdrawal() -> None:
    leader = await stand_on(dev_node(block_time_ms=UNHURRIED_MS, slice_interval_ms=SLICE_MS))
    url = leader.server.urls[0]
    first = leader.node.chain.genesis.header.timestamp
    node = dev_node(
        block_time_ms=UNHURRIED_MS, slice_interval_ms=SLICE_MS, mining=Mining.NEVER, timestamp=first
    )
    node.follow(url, url.replace("http", "ws") + "/feed")
    follower = await stand_on(node)
    watcher, caller = await follower.client(), await leader.client()
    async with asyncio.timeout(MAX_WAIT):
        while not node.metrics_registry.get("feed_connected"):
            await asyncio.sleep(0.02)
        await asyncio.to_thread(leader.node.mine)
        while node.pending() is None:
            await asyncio.sleep(0.02)
    mirror = Mirror(watcher)
    await watcher.subscribe("stateChanges", [RECEIVER])
    await caller.result("eth_sendRawTransaction", leader.sign(to=RECEIVER, value=3))
    change = await mirror.read()
    assert (change["balance"], change["blockNumber"]) == ("0x3", "0x2")
    feed = node.follower.sync.follower  # type: ignore[union-attr]
    await asyncio.to_thread(feed.withdraw, "test")
    back = await mirror.read()
    assert (back["balance"], back["blockNumber"], back["index"]) == ("0x0", "0x1", None)
    for harness in (follower, leader):
        await harness.http.close()
        await harness.server.stop()
