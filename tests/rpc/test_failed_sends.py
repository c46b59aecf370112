"""Tests transactions that fail: the node returns a hash, like anvil, or an error, like Hardhat."""

from collections.abc import Iterator
from typing import Any

import pytest
from eth_abi import encode

from fastevm import Transaction
from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.node.dev_accounts import dev_accounts

ALICE = dev_accounts(1)[0]
SENDER = "0x" + ALICE.address.hex()
REASON = bytes.fromhex("08c379a0") + encode(["string"], ["GS010"])
VM = "VM Exception while processing transaction: "
# Code that copies the revert reason, which follows it, to memory and reverts with it.
SIZE = len(REASON)
HEAD = bytes.fromhex(f"60{SIZE:02x}600c60003960{SIZE:02x}6000fd")
REVERTING, HALTING, SILENT = ("0x" + letter * 40 for letter in "abc")
GAS = "0xf4240"


@pytest.fixture
def node() -> Iterator[LocalNode]:
    with LocalNode(throw_on_transaction_failures=True) as made:
        yield prepared(made)


def prepared(node: LocalNode) -> LocalNode:
    for address, code in ((REVERTING, HEAD + REASON), (HALTING, b"\xfe"), (SILENT, b"")):
        node.request("anvil_setCode", [address, "0x" + code.hex()])
    return node


def sent(to: str) -> dict[str, Any]:
    return {"from": SENDER, "to": to, "gas": GAS}


def raw(to: str) -> str:
    fields = {"nonce": 0, "to": bytes.fromhex(to[2:]), "gas_limit": 10**6, "gas_price": 10**10}
    return "0x" + Transaction.build(**fields).sign(ALICE.private_key, chain_id=31_337).raw.hex()


@pytest.mark.parametrize("method", ["eth_sendTransaction", "eth_sendRawTransaction"])
@pytest.mark.parametrize(
    ("to", "words", "output"),
    [
        (REVERTING, f"{VM}reverted with reason string 'GS010'", "0x" + REASON.hex()),
        (HALTING, f"{VM}invalid opcode", "0x"),
    ],
)
def test_a_failed_transaction_is_an_error_with_its_hash_and_return_data(
    node: LocalNode, method: str, to: str, words: str, output: str
) -> None:
    value = sent(to) if method == "eth_sendTransaction" else raw(to)
    with pytest.raises(NodeError) as failed:
        node.request(method, [value])
    assert (failed.value.code, failed.value.message) == (-32603, words)
    data = failed.value.data
    assert (data["message"], data["data"]) == (words, output)
    receipt = node.request("eth_getTransactionReceipt", [data["txHash"]])
    assert (receipt["status"], receipt["blockNumber"]) == ("0x0", "0x1")
    assert node.request("eth_getTransactionCount", [SENDER, "latest"]) == "0x1"


def test_what_succeeds_or_waits_for_its_block_is_a_hash(node: LocalNode) -> None:
    assert len(node.request("eth_sendTransaction", [sent(SILENT)])) == 66
    node.request("evm_setAutomine", [False])
    assert len(node.request("eth_sendTransaction", [sent(REVERTING)])) == 66


def test_a_call_that_halts_has_empty_return_data(node: LocalNode) -> None:
    with pytest.raises(NodeError) as failed:
        node.request("eth_call", [sent(HALTING)])
    assert failed.value.data == "0x"


def test_without_the_option_a_failed_transaction_is_a_hash() -> None:
    with LocalNode() as made:
        node = prepared(made)
        reported = node.request("eth_sendTransaction", [sent(REVERTING)])
        assert node.request("eth_getTransactionReceipt", [reported])["status"] == "0x0"
        with pytest.raises(NodeError) as failed:
            node.request("eth_call", [sent(HALTING)])
        assert failed.value.data is None
