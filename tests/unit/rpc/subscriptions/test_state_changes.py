"""Tests ``stateChanges`` over a WebSocket: reported accounts, times and values."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import server_of
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.state.layer import Layer
from fastevm.rpc.limits import STATE_CHANGE_ADDRESSES, Limits
from fastevm.rpc.subscriptions import state_changes
from fastevm.rpc.transport.server import Server
from tests.rpc.sockets import SocketClient
from tests.unit.rpc.fakes import FakeNode, FakePending, FakeSimulator, chain_of, header

A, B, C = (bytes([number]) * 20 for number in (0xAA, 0xBB, 0xCC))


class Harness:
    """Serves a node in memory over WebSockets. Tests set the node's states."""

    def __init__(self, node: FakeNode, server: Server, http: aiohttp.ClientSession) -> None:
        self.node = node
        self.server = server
        self.http = http
        self.start = Layer.of({A: {"balance": 5, "nonce": 1, "storage": {1: 2}}, B: {"balance": 7}})
        node.chain.layers[node.chain.head.hash] = self.start

    async def client(self, dialect: int = 0) -> SocketClient:
        return SocketClient(await self.http.ws_connect(self.server.urls[dialect]))

    def slice(self, index: int, layer: Layer) -> FakePending:
        """Publishes a slice with this state."""
        head = self.node.chain.head
        parent = header(head.number + 1, parent_hash=head.hash)
        made = FakePending(header=parent, slice_index=index, layer=layer)
        self.node.publish(made)
        return made

    def block(self, layer: Layer, remove: int = 0, extra: bytes = b"") -> None:
        """Removes ``remove`` blocks, then makes a block with this state the head."""
        blocks = self.node.chain.blocks
        parent = blocks[len(blocks) - 1 - remove]
        made = chain_of(1).blocks[0]
        made = type(made)(header(parent.number + 1, parent_hash=parent.hash, extra_data=extra), ())
        self.node.chain.layers[made.hash] = layer
        self.node.chain.move(made, remove=remove)


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    node = FakeNode(chain_of(3))
    options = {"simulator": FakeSimulator(), "limits": Limits(), "threads": 1}
    server = server_of(node, "preconf", "geth", **options)
    await server.start()
    made = Harness(node, server, aiohttp.ClientSession())
    yield made
    await made.http.close()
    await server.stop()


def reported(address: bytes, nonce: int, balance: int, storage: dict[int, int], *at: Any) -> Any:
    number, index = at
    return {
        "address": hex_bytes(address),
        "nonce": nonce,
        "balance": hex(balance),
        "storage": {hex(slot): hex(value) for slot, value in storage.items()},
        "blockNumber": hex(number),
        "index": index,
    }


@pytest.mark.parametrize("dialect", [0, 1])
async def test_each_slice_reports_what_it_changed(harness: Harness, dialect: int) -> None:
    client = await harness.client(dialect)
    name = await client.subscribe("stateChanges", [hex_bytes(A), hex_bytes(C)])
    first = harness.start.with_accounts(
        {A: {"balance": 6, "storage": {1: 0, 9: 3}}, B: {"nonce": 1}}
    )
    harness.slice(0, first)
    assert await client.note() == (name, reported(A, 1, 6, {1: 0, 9: 3}, 3, 0))
    second = first.with_accounts({C: {"balance": 1}, A: {"nonce": 2}})
    harness.slice(1, second)
    assert await client.results(2) == [reported(A, 2, 6, {}, 3, 1), reported(C, 0, 1, {}, 3, 1)]
    harness.slice(2, second.with_accounts({B: {"balance": 8}}))
    await client.silence()


async def test_a_block_reports_only_what_its_slices_did_not(harness: Harness) -> None:
    client = await harness.client()
    await client.subscribe("stateChanges", [hex_bytes(A)])
    state = harness.start.with_accounts({A: {"balance": 6}})
    harness.slice(0, state)
    assert await client.results(1) == [reported(A, 1, 6, {}, 3, 0)]
    harness.block(state.with_accounts({A: {"storage": {5: 5}}}))
    assert await client.results(1) == [reported(A, 1, 6, {5: 5}, 3, None)]
    harness.block(state.with_accounts({A: {"storage": {5: 5}}}))
    await client.silence()


async def test_a_withdrawn_slice_is_reported_as_the_values_that_stand_now(harness: Harness) -> None:
    client = await harness.client()
    await client.subscribe("stateChanges", [hex_bytes(A)])
    harness.slice(0, harness.start.with_accounts({A: {"balance": 6, "storage": {1: 9, 2: 9}}}))
    assert await client.results(1) == [reported(A, 1, 6, {1: 9, 2: 9}, 3, 0)]
    harness.node.withdraw()
    assert await client.results(1) == [reported(A, 1, 5, {1: 2, 2: 0}, 2, None)]
    harness.node.withdraw()
    await client.silence()


async def test_a_reorganisation_reports_the_values_of_the_new_chain(harness: Harness) -> None:
    client = await harness.client()
    await client.subscribe("stateChanges", [hex_bytes(A), hex_bytes(B), hex_bytes(C)])
    changes = {A: {"balance": 6}, C: {"nonce": 1, "storage": {3: 3}}}
    harness.block(harness.start.with_accounts(changes))
    assert await client.results(2) == [
        reported(A, 1, 6, {}, 3, None),
        reported(C, 1, 0, {3: 3}, 3, None),
    ]
    harness.block(harness.start.with_accounts({B: {"balance": 8}}), remove=1, extra=b"other")
    assert await client.results(3) == [
        reported(A, 1, 5, {}, 3, None),
        reported(B, 0, 8, {}, 3, None),
        reported(C, 0, 0, {3: 0}, 3, None),
    ]


async def test_an_older_slice_after_a_newer_one_takes_nothing_back(harness: Harness) -> None:
    client = await harness.client()
    await client.subscribe("stateChanges", [hex_bytes(A)])
    late = harness.slice(0, harness.start.with_accounts({A: {"balance": 6}}))
    harness.slice(1, late.layer.with_accounts({A: {"balance": 7}}))
    harness.node.publish(late)
    balances = [change["balance"] for change in await client.results(2)]
    assert balances == ["0x6", "0x7"]
    await client.silence()


async def test_a_subscription_that_begins_late_starts_from_the_newest_slice(
    harness: Harness,
) -> None:
    first = harness.start.with_accounts({A: {"balance": 6}})
    harness.slice(0, first)
    client, other = await harness.client(), await harness.client()
    name = await client.subscribe("stateChanges", [hex_bytes(A)])
    await other.subscribe("stateChanges", [hex_bytes(A)])
    await client.silence()
    harness.slice(1, first.with_accounts({A: {"balance": 8}}))
    wanted = [reported(A, 1, 8, {}, 3, 1)]
    assert await client.results(1) == wanted == await other.results(1)
    assert await client.result("eth_unsubscribe", name) is True
    harness.slice(2, first.with_accounts({A: {"balance": 9}}))
    assert await other.results(1) == [reported(A, 1, 9, {}, 3, 2)]
    await client.silence()


async def test_many_slots_of_an_account_come_in_several_messages(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_changes, "SLOTS_IN_A_MESSAGE", 3)
    client = await harness.client()
    await client.subscribe("stateChanges", [hex_bytes(B)])
    harness.slice(0, harness.start.with_accounts({B: {"storage": dict.fromkeys(range(7), 1)}}))
    parts = await client.results(3)
    assert [len(part["storage"]) for part in parts] == [3, 3, 1]
    assert {int(slot, 16) for part in parts for slot in part["storage"]} == set(range(7))


ADDRESSES = [hex_bytes(number.to_bytes(20)) for number in range(STATE_CHANGE_ADDRESSES + 1)]


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ([], "expected an array of addresses with at least one"),
        (None, "expected an array of addresses with at least one"),
        ({"address": "0x" + "11" * 20}, "expected an array of addresses"),
        (["0x11"], "hex string has length 2"),
        ([5], "cannot unmarshal"),
        (ADDRESSES, f"{STATE_CHANGE_ADDRESSES + 1} addresses, the limit is"),
    ],
)
async def test_a_wrong_argument_is_refused(harness: Harness, argument: Any, text: str) -> None:
    client = await harness.client()
    answer = await client.ask("eth_subscribe", "stateChanges", argument)
    assert answer["error"]["code"] == -32602
    assert text in answer["error"]["message"]
    assert harness.server.hub.subscriptions == 0


async def test_addresses_count_as_memory_of_their_client() -> None:
    node = FakeNode(chain_of(3))
    limits = Limits(address_watch_size=100_000)
    server = server_of(node, "preconf", simulator=FakeSimulator(), limits=limits, threads=1)
    await server.start()
    async with aiohttp.ClientSession() as http:
        client = SocketClient(await http.ws_connect(server.urls[0]))
        await client.subscribe("stateChanges", ADDRESSES[:700])
        answer = await client.ask("eth_subscribe", "stateChanges", ADDRESSES[:700])
        assert "100000" in json.dumps(answer["error"])
    await server.stop()
