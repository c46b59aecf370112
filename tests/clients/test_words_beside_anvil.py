"""Compares answers and error texts of a development node with anvil's."""

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import LoadError
from fastevm.rpc_client.messages import RpcRefusal
from tests.ecosystem.development.nodes import BASELINE, NODES, OURS, running

ALICE = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
BOB = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
POOR = "0x" + "77" * 20
REVERTS, HALTS, CUSTOM, LOGS = ("0x" + byte * 20 for byte in ("b1", "b2", "b3", "b4"))
CODES = {
    REVERTS: "0x60006000fd",
    HALTS: "0xfe",
    CUSTOM: "0x63deadbeef6000526004601cfd",
    LOGS: "0x60006000a000",
}
GWEI = 10**9
ETHER = 10**18
SECONDS = 10.0

Nodes = dict[str, NodeProcess]


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which brings anvil")
    try:
        anvil = NODES[BASELINE]()
    except LoadError as reason:
        pytest.skip(str(reason))
    with running(anvil), running(NODES[OURS]()) as ours:
        for node in (anvil, ours):
            for address, code in CODES.items():
                node.ask("anvil_setCode", address, code)
        yield {BASELINE: anvil, OURS: ours}


def reported(node: NodeProcess, method: str, *params: Any) -> Any:
    """Returns the result, or code, message and data of the error."""
    try:
        return node.ask(method, *params)
    except RpcRefusal as refusal:
        return refusal.code, refusal.message, refusal.data


def same(nodes: Nodes, method: str, *params: Any) -> Any:
    """Returns the answer to a request. Fails if the nodes' answers differ."""
    theirs, ours = (reported(nodes[name], method, *params) for name in (BASELINE, OURS))
    assert ours == theirs
    return ours


def receipt(node: NodeProcess, request: dict[str, Any]) -> dict[str, Any]:
    """Sends a transaction and waits for its receipt, because anvil answers before it mines."""
    tx_hash = node.ask("eth_sendTransaction", request)
    end = time.monotonic() + SECONDS
    while (found := node.ask("eth_getTransactionReceipt", tx_hash)) is None:
        assert time.monotonic() < end, "not mined"
        time.sleep(0.02)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
@pytest.mark.parametrize("target", [REVERTS, HALTS, CUSTOM])
def test_what_fails_is_reported_in_the_same_words(nodes: Nodes, method: str, target: str) -> None:
    assert isinstance(same(nodes, method, {"from": ALICE, "to": target}), tuple)


@pytest.mark.parametrize(
    "request_",
    [
        {"from": ALICE, "to": BOB, "value": hex(10**30)},
        {"from": ALICE, "to": BOB, "gas": "0x5207"},
        {"from": ALICE, "to": BOB, "gas": "0xffffffff"},
        {"from": ALICE, "to": BOB, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x1"},
        {"from": ALICE, "to": BOB, "gasPrice": "0x1"},
        {
            "from": ALICE,
            "to": BOB,
            "maxFeePerGas": hex(GWEI),
            "maxPriorityFeePerGas": hex(2 * GWEI),
        },
        {"from": POOR, "to": BOB, "value": "0x1"},
    ],
)
def test_a_transaction_is_refused_in_the_same_words(nodes: Nodes, request_: dict[str, str]) -> None:
    assert isinstance(same(nodes, "eth_sendTransaction", request_), tuple)


def test_a_used_nonce_is_refused_in_the_same_words(nodes: Nodes) -> None:
    for node in nodes.values():
        receipt(node, {"from": ALICE, "to": BOB})
    refused = same(nodes, "eth_sendTransaction", {"from": ALICE, "to": BOB, "nonce": "0x0"})
    assert refused == (-32003, "nonce too low", None)


@pytest.mark.parametrize("method", ["eth_estimateGas", "eth_call"])
@pytest.mark.parametrize(
    "more",
    [{}, {"value": "0x1"}, {"gasPrice": hex(2 * GWEI)}, {"gasPrice": hex(GWEI), "gas": "0x5208"}],
)
def test_a_sender_without_funds_is_reported_the_same(
    nodes: Nodes, method: str, more: dict[str, str]
) -> None:
    same(nodes, method, {"from": POOR, "to": BOB, **more})


def test_an_estimate_of_a_contract_with_value_needs_funds(nodes: Nodes) -> None:
    same(nodes, "eth_estimateGas", {"from": POOR, "to": LOGS, "value": "0x1"})
    same(nodes, "eth_estimateGas", {"from": POOR, "to": LOGS, "gasPrice": hex(2 * GWEI)})


def test_an_unknown_transaction_has_no_bytes(nodes: Nodes) -> None:
    assert same(nodes, "eth_getRawTransactionByHash", "0x" + "11" * 32) is None


def test_receipts_have_the_same_members(nodes: Nodes) -> None:
    theirs, ours = (receipt(node, {"from": ALICE, "to": LOGS}) for node in nodes.values())
    assert set(ours) == set(theirs)
    assert set(ours["logs"][0]) == set(theirs["logs"][0])
    assert ours["blobGasPrice"] == theirs["blobGasPrice"] == "0x1"
    for name, found in (BASELINE, theirs), (OURS, ours):
        block = nodes[name].ask("eth_getBlockByNumber", found["blockNumber"], False)
        assert found["blockTimestamp"] == int(block["timestamp"], 16)


def test_a_transaction_that_fails_is_mined_without_gas(nodes: Nodes) -> None:
    for node in nodes.values():
        assert receipt(node, {"from": ALICE, "to": REVERTS})["status"] == "0x0"


def test_the_first_account_sends_where_none_is_named(nodes: Nodes) -> None:
    for node in nodes.values():
        assert receipt(node, {"to": BOB, "value": "0x1"})["from"] == ALICE


def test_the_gas_price_is_that_of_the_next_block(nodes: Nodes) -> None:
    for node in nodes.values():
        receipt(node, {"from": ALICE, "to": BOB})
        node.ask("anvil_setNextBlockBaseFeePerGas", hex(7 * GWEI))
        assert int(node.ask("eth_gasPrice"), 16) == 8 * GWEI
        node.ask("evm_mine")


def test_a_higher_fee_cap_is_enough_to_replace(nodes: Nodes) -> None:
    prices = [(30, 1), (31, 1), (31, 1), (32, 1)]
    found = {}
    for name, node in nodes.items():
        node.ask("evm_setAutomine", False)
        nonce = node.ask("eth_getTransactionCount", ALICE, "latest")
        found[name] = [
            isinstance(reported(node, "eth_sendTransaction", {
                "from": ALICE, "to": BOB, "nonce": nonce,
                "maxFeePerGas": hex(cap * GWEI), "maxPriorityFeePerGas": hex(tip * GWEI),
            }), str)
            for cap, tip in prices
        ]  # fmt: skip
        node.ask("evm_setAutomine", True)
    assert found[OURS] == found[BASELINE] == [True, True, False, True]
