"""Compares every method with anvil, for every kind of block parameter, on the same history."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.anvil import anvil_process
from tests.max_wait import MAX_WAIT
from tests.rpc.block_names import Json, Named, ask, play, requests, result

EPOCH: Final = 2
NAMES: Final = (
    "latest",
    "pending",
    "earliest",
    "safe",
    "finalized",
    "0x0",
    "0x1",
    "0xfffff",
)
EMPTY: Final[tuple[Any, ...]] = ([], "0x")
# Methods whose results do not depend on the clock, the fees or the client, so they must be equal.
SAME_VALUE: Final = (
    "eth_call",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getStorageAt",
    "eth_getStorageValues",
    "eth_getTransactionCount",
    "eth_getUncleCountByBlockNumber",
    "ots_hasCode",
)
# Method and block parameter for which anvil's answer differs: anvil uses the newest block instead
# of the pending one, and returns fees and codes of blocks that do not exist.
DIFFERENT: Final = {
    ("debug_codeByHash", "0xfffff"),
    ("debug_traceBlockByNumber", "pending"),
    ("erigon_getHeaderByNumber", "pending"),
    ("eth_feeHistory", "0xfffff"),
    ("eth_getBlockReceipts", "pending"),
    ("eth_getLogs", "pending"),
    ("trace_block", "pending"),
    ("trace_replayBlockTransactions", "pending"),
}
REQUESTS: Final = tuple(requests())


@pytest.fixture(scope="module")
def ours() -> Iterator[JsonRpcClient]:
    node = dev_node(mining=Mining.MANUAL)
    node.slots_in_an_epoch = EPOCH
    with ServerThread(node, development=True) as server, server.client("geth") as client:
        play(client)
        yield client


@pytest.fixture(scope="module")
def anvil() -> Iterator[JsonRpcClient]:
    with (
        anvil_process("--no-mining", "--slots-in-an-epoch", str(EPOCH)) as process,
        JsonRpcClient(process.url, timeout=MAX_WAIT) as client,
    ):
        play(client)
        yield client


def kind(answer: Json) -> str:
    if "error" in answer:
        return "error"
    value = answer["result"]
    if value is None:
        return "null"
    return "empty" if value in EMPTY else "value"


@pytest.mark.parametrize("named", REQUESTS, ids=lambda named: named.method)
def test_what_anvil_answers_is_answered_in_kind(
    ours: JsonRpcClient, anvil: JsonRpcClient, named: Named
) -> None:
    for name in NAMES:
        wanted = ask(anvil, named.method, *named.params(name))
        if "error" in wanted or (named.method, name) in DIFFERENT:
            continue
        found = ask(ours, named.method, *named.params(name))
        assert kind(found) == kind(wanted), (name, found, wanted)
        if named.method in SAME_VALUE:
            assert found == wanted, name


def test_safe_and_finalized_lie_epochs_below_the_head(
    ours: JsonRpcClient, anvil: JsonRpcClient
) -> None:
    for client in (ours, anvil):
        numbers = [
            int(result(client, "eth_getBlockByNumber", name, False)["number"], 16)
            for name in ("latest", "safe", "finalized")
        ]
        assert numbers == [3, 1, 0]


@pytest.mark.parametrize("block_range", [("0x0", "0xff"), ("0x0", "finalized"), ("safe", "0xff")])
def test_ranges_of_logs_may_end_above_the_head(
    ours: JsonRpcClient, anvil: JsonRpcClient, block_range: tuple[str, str]
) -> None:
    first, last = block_range
    wanted = {"fromBlock": first, "toBlock": last}
    found = [len(result(client, "eth_getLogs", wanted)) for client in (ours, anvil)]
    assert found[0] == found[1]
