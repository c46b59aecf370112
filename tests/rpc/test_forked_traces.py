"""Tests traces and log searches on a fork, of local blocks and of the upstream's earlier blocks."""

from typing import Any

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.hex import hex_bytes

from .test_forked_node import COUNTER, accounts, counting, still, upstream

__all__ = ["still", "upstream"]


def sent(client: Any) -> dict[str, Any]:
    """Mines a block with a transaction that calls the counter. Returns its receipt."""
    sender = accounts()[0]
    nonce = int(client.call("eth_getTransactionCount", hex_bytes(sender.address), "latest"), 16)
    tx_hash = client.call("eth_sendRawTransaction", hex_bytes(counting(sender, nonce)))
    client.call("evm_mine")
    receipt: dict[str, Any] = client.call("eth_getTransactionReceipt", tx_hash)
    return receipt


def test_blocks_above_the_fork_are_traced_here(still: ServerThread) -> None:
    with still.client("geth") as client:
        receipt = sent(client)
        tx_hash, number = receipt["transactionHash"], receipt["blockNumber"]
        frames = client.call("trace_transaction", tx_hash)
        assert [frame["action"]["to"] for frame in frames] == [hex_bytes(COUNTER)]
        assert client.call("trace_block", number) == frames
        assert client.call("trace_filter", {}) == frames
        every = ["trace", "vmTrace", "stateDiff"]
        replay = client.call("trace_replayTransaction", tx_hash, every)
        assert hex_bytes(COUNTER) in replay["stateDiff"]
        (block,) = client.call("trace_replayBlockTransactions", number, every)
        assert block == replay | {"transactionHash": tx_hash}
        config = {"tracer": "muxTracer", "tracerConfig": {"erc7562Tracer": None, "callTracer": {}}}
        both = client.call("debug_traceTransaction", tx_hash, config)
        assert both["callTracer"]["gasUsed"] == both["erc7562Tracer"]["gasUsed"]


def test_calls_build_on_each_other_above_the_fork(still: ServerThread) -> None:
    with still.client("geth") as client:
        call = {"to": hex_bytes(COUNTER)}
        first, second = client.call("trace_callMany", [[call, ["stateDiff"]]] * 2, "latest")
        values = [
            next(iter(item["stateDiff"][hex_bytes(COUNTER)]["storage"].values()))["*"]
            for item in (first, second)
        ]
        assert values[0]["to"] == values[1]["from"]
        found = client.call("eth_callMany", [{"transactions": [call, call]}])
        assert [list(item) for item in found[0]] == [["value"], ["value"]]


def test_what_lies_before_the_fork_is_the_upstreams(
    still: ServerThread, upstream: ServerThread
) -> None:
    with still.client("geth") as client, upstream.client("geth") as there:
        old = there.call("eth_getBlockByNumber", "0x9", False)
        (tx_hash,) = old["transactions"]
        for method, *params in (
            ("trace_transaction", tx_hash),
            ("trace_replayTransaction", tx_hash, ["trace"]),
            ("trace_block", "0x9"),
            ("ots_getBlockDetails", 9),
            ("eth_getHeaderByHash", old["hash"]),
            ("eth_getTransactionBySenderAndNonce", hex_bytes(accounts()[2].address), "0x0"),
        ):
            assert client.call(method, *params) == there.call(method, *params), method


def test_searches_stay_above_the_fork(still: ServerThread) -> None:
    with still.client("geth") as client:
        receipt = sent(client)
        sender = receipt["from"]
        page = client.call("ots_searchTransactionsBefore", sender, 0, 10)
        assert [item["hash"] for item in page["txs"]] == [receipt["transactionHash"]]
        assert page["lastPage"] is True
        same = client.call("ots_searchTransactionsAfter", sender, 0, 10)
        assert same["txs"] == page["txs"]
        nonce = int(page["txs"][0]["nonce"], 16)
        assert (
            client.call("ots_getTransactionBySenderAndNonce", sender, nonce)
            == (receipt["transactionHash"])
        )
