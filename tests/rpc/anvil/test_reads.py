"""Tests read methods of anvil that the execution API lacks, with anvil's members and values."""

from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node

from .scenario import NOBODY, SENDER, Side, without

BLOCK_MEMBERS = frozenset(
    (
        "blockHash",
        "blockTimestamp",
        "hash",
        "gasPrice",
        "maxFeePerGas",
        "maxPriorityFeePerGas",
        "r",
        "s",
        "v",
        "yParity",
    )
)
UNUSED = NOBODY[:-1] + "8"
FEES_PAID = frozenset(("balance",))


@pytest.mark.parametrize("method", ["eth_getAccount", "eth_getAccountInfo"])
def test_accounts(ours: Side, anvil: Side, method: str) -> None:
    for name in ("echo", "caller", "dies"):
        assert ours.result(method, ours.contract(name), "latest") == (
            anvil.result(method, anvil.contract(name), "latest")
        )
    assert ours.result(method, UNUSED, "latest") == anvil.result(method, UNUSED, "latest")
    found, wanted = (side.result(method, SENDER, "latest") for side in (ours, anvil))
    assert without(found, FEES_PAID) == without(wanted, FEES_PAID)
    assert ours.result(method, SENDER) == found


def test_raw_transactions_by_their_place(ours: Side) -> None:
    receipt = ours.receipts["calls"]
    raw = ours.result("eth_getRawTransactionByHash", receipt["transactionHash"])
    number, block_hash = receipt["blockNumber"], receipt["blockHash"]
    by_number, by_hash = (
        f"eth_getRawTransactionByBlock{name}AndIndex" for name in ("Number", "Hash")
    )
    assert ours.result(by_number, number, "0x0") == raw
    assert ours.result(by_hash, block_hash, "0x0") == raw
    assert ours.result(by_number, number, "0x5") is None
    assert ours.result(by_number, "0xfff", "0x0") is None
    assert ours.result(by_hash, "0x" + "12" * 32, "0x0") is None


@pytest.mark.parametrize("nonce", ["0x0", "0x3", "0x9", "0xff"])
def test_transactions_by_sender_and_nonce(ours: Side, anvil: Side, nonce: str) -> None:
    found, wanted = (
        side.result("eth_getTransactionBySenderAndNonce", SENDER, nonce) for side in (ours, anvil)
    )
    assert without(found, BLOCK_MEMBERS) == without(wanted, BLOCK_MEMBERS)
    if found is not None:
        assert found == ours.result("eth_getTransactionByHash", found["hash"])


def test_every_transaction_is_found_by_its_sender(ours: Side) -> None:
    for receipt in ours.receipts.values():
        sent = ours.result("eth_getTransactionByHash", receipt["transactionHash"])
        assert ours.result("eth_getTransactionBySenderAndNonce", SENDER, sent["nonce"]) == sent
    assert ours.result("eth_getTransactionBySenderAndNonce", ours.contract("caller"), "0x1") is None


def test_headers(ours: Side) -> None:
    body = {"size", "uncles", "transactions", "withdrawals"}
    block = ours.result("eth_getBlockByNumber", "latest", False)
    wanted = {name: value for name, value in block.items() if name not in body}
    assert ours.result("eth_getHeaderByNumber", block["number"]) == wanted
    assert ours.result("eth_getHeaderByNumber", "latest") == wanted
    assert ours.result("eth_getHeaderByHash", block["hash"]) == wanted
    assert ours.result("erigon_getHeaderByNumber", block["number"]) == wanted
    assert ours.result("eth_getHeaderByNumber", "0xfff") is None


@pytest.mark.parametrize("method", ["eth_protocolVersion", "eth_networkId", "txpool_inspect"])
def test_answers_are_those_of_anvil(ours: Side, anvil: Side, method: str) -> None:
    assert ours.result(method) == anvil.result(method)


def test_the_methods_are_described(ours: Side) -> None:
    document = ours.result("rpc_discover")
    methods: dict[str, Any] = {entry["name"]: entry for entry in document["methods"]}
    described = methods["eth_getBalance"]
    assert [param["name"] for param in described["params"]] == ["address", "block"]
    assert [param["required"] for param in described["params"]] == [True, False]
    assert described["summary"].startswith("Return the balance in wei")
    assert "eth_sendRawTransaction" in methods


@pytest.mark.parametrize("program", ["0x485f5260205ff3", "0x3a5f5260205ff3"])
def test_base_fee_and_price_of_calls_without_a_price(anvil: Side, program: str) -> None:
    """BASEFEE returns the block's base fee, and GASPRICE returns zero."""
    params = ({"to": NOBODY}, "latest", {NOBODY: {"code": program}})
    node = dev_node(mining=Mining.INSTANT)
    with ServerThread(node, development=True) as server, server.client("geth") as client:
        ours, found = Side(client), {}
        for name, side in (("ours", ours), ("anvil", anvil)):
            fee = int(side.result("eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
            found[name] = int(side.result("eth_call", *params), 16) == fee
    assert found["ours"] == found["anvil"] == program.startswith("0x48")
