"""Tests the timestamps in milliseconds that blocks have in JSON since Denim."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fastevm.core.primitives.hex import hex_bytes, hex_word
from fastevm.node import Mining, Node, dev_node
from tests.op_chain import START
from tests.rpc.base.chain import FACTORY, GAS, STABLECOIN, Base, call_data
from tests.rpc.sockets import SocketClient, connected

BASE_TIME = "0x4200000000000000000000000000000000000030"
OF_BLOCK, OF_CONTENT = "timestampMs", "blockTimestampMs"
# fork -> milliseconds of the first block
MILLIS = {"cobalt": None, "denim": hex(START * 1_000 + 200)}


@pytest.fixture(params=MILLIS)
def fork(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def node(fork: str) -> Node:
    return dev_node(accounts=1, op_fork=fork, mining=Mining.MANUAL, timestamp=START)


@pytest.fixture
async def client(node: Node) -> AsyncIterator[SocketClient]:
    async with connected(node) as found:
        yield found


async def sent(client: SocketClient, node: Node, fork: str, salt: int = 1) -> str:
    """Sends a transaction that creates a token and emits logs. Returns its hash."""
    base = Base.__new__(Base)
    base.fork, base.owner = fork, hex_bytes(node.accounts[0].address)
    data = hex_bytes(base.creation(STABLECOIN, salt.to_bytes(32, "big")))
    call = {"from": base.owner, "to": FACTORY, "input": data, "gas": GAS}
    return str(await client.result("eth_sendTransaction", call))


def millis(found: list[Any], name: str) -> set[Any]:
    """Returns the values of the member ``name`` in a list of objects. None stands for no member."""
    assert found
    return {item.get(name) for item in found}


async def test_blocks_transactions_and_logs_have_them(
    client: SocketClient, node: Node, fork: str
) -> None:
    expected = {MILLIS[fork]}
    tx_hash = await sent(client, node, fork)
    waiting = await client.result("eth_getTransactionByHash", tx_hash)
    assert OF_CONTENT not in waiting
    await client.result("evm_mine")
    ask = client.result
    block = await ask("eth_getBlockByNumber", "0x1", True)
    headers = [
        block,
        await ask("eth_getBlockByHash", block["hash"], False),
        await ask("eth_getHeaderByNumber", "0x1"),
        await ask("eth_getHeaderByHash", block["hash"]),
    ]
    assert millis(headers, OF_BLOCK) == expected
    transactions = [*block["transactions"], await ask("eth_getTransactionByHash", tx_hash)]
    transactions.append(await ask("eth_getTransactionByBlockNumberAndIndex", "0x1", "0x0"))
    assert millis(transactions, OF_CONTENT) == expected
    receipt = await ask("eth_getTransactionReceipt", tx_hash)
    receipts = [receipt, *await ask("eth_getBlockReceipts", "0x1")]
    assert millis(receipts, OF_CONTENT) == millis(receipts, OF_BLOCK) == {None}
    logs = [*receipt["logs"], *await ask("eth_getLogs", {"fromBlock": "0x1"})]
    logs += [log for item in receipts for log in item["logs"]]
    assert millis(logs, OF_CONTENT) == expected
    assert {item["timestamp"] for item in headers} == {block["timestamp"]}
    assert not {OF_BLOCK} & {key for item in transactions + logs for key in item}


async def test_subscriptions_and_filters_have_them(
    client: SocketClient, node: Node, fork: str
) -> None:
    expected = {MILLIS[fork]}
    watched = await client.result("eth_newFilter", {"address": FACTORY})
    names = {await client.subscribe(name): name for name in ("newHeads", "logs")}
    names[await client.subscribe("transactionReceipts")] = "receipts"
    tx_hash = await sent(client, node, fork)
    await client.result("evm_mine")
    receipt = await client.result("eth_getTransactionReceipt", tx_hash)
    reported: dict[str, list[Any]] = {name: [] for name in names.values()}
    for _ in range(2 + len(receipt["logs"])):
        subscription, found = await client.note()
        reported[names[subscription]].append(found)
    assert millis(reported["newHeads"], OF_BLOCK) == expected
    assert millis(reported["logs"], OF_CONTENT) == expected
    logs = [log for found in reported["receipts"] for item in found for log in item["logs"]]
    assert millis(logs, OF_CONTENT) == expected
    changes = await client.result("eth_getFilterChanges", watched)
    assert millis(changes, OF_CONTENT) == expected


async def test_removed_logs_keep_them(client: SocketClient, node: Node, fork: str) -> None:
    snapshot = await client.result("evm_snapshot")
    await client.subscribe("logs")
    await sent(client, node, fork)
    await client.result("evm_mine")
    count = len(await client.result("eth_getLogs", {"fromBlock": "0x1"}))
    added = await client.results(count)
    await client.result("evm_revert", snapshot)
    removed = await client.results(count)
    assert {log["removed"] for log in removed} == {True}
    assert millis(added, OF_CONTENT) == millis(removed, OF_CONTENT) == {MILLIS[fork]}


@pytest.mark.parametrize("fork", ["denim"], indirect=True)
async def test_overrides_of_a_caller_win_over_the_forecast(client: SocketClient, fork: str) -> None:
    call = {"to": BASE_TIME, "input": hex_bytes(call_data("timestampMillisPart()"))}
    await client.result("evm_mine")
    override = {BASE_TIME: {"stateDiff": {hex_word(0): hex_word(600)}}}
    found = [
        int(await client.result("eth_call", call, *more), 16)
        for more in (["latest"], ["pending"], ["pending", override])
    ]
    assert found == [200, 400, 600]
