"""Tests impersonation over HTTP, by anvil's, Hardhat's and Ganache's names."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.execution.transaction.transaction import sign_authorization
from fastevm.core.precompiles.ecrecover import forget_impersonated_signatures
from fastevm.node import Mining, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID

from .test_dev_node import RECEIVER, Client

WHALE = "0x" + "1a" * 20
ETHER = hex(10**18)


@pytest.fixture
def client() -> Iterator[Client]:
    live = ServerThread(dev_node(mining=Mining.INSTANT))
    live.start()
    yield Client(live.url("geth"))
    live.stop()


@pytest.mark.parametrize("family", ["anvil", "hardhat"])
def test_an_account_is_impersonated_and_left(client: Client, family: str) -> None:
    payment = {"from": WHALE, "to": RECEIVER, "value": "0x5"}
    client.result("anvil_setBalance", WHALE, ETHER)
    client.result("anvil_setCode", WHALE, "0x00")
    assert (
        client.ask("eth_sendTransaction", payment)["error"]["message"]
        == "unknown account: No Signer available"
    )
    assert client.result(f"{family}_impersonateAccount", WHALE) is None
    # Of the three, only anvil lists impersonated accounts.
    listed = [WHALE] if family == "anvil" else []
    assert client.result("eth_accounts")[10:] == listed
    assert client.result("eth_requestAccounts")[10:] == listed
    tx_hash = client.result("eth_sendTransaction", payment)
    shown = client.result("eth_getTransactionByHash", tx_hash)
    assert (shown["from"], shown["hash"], shown["r"], shown["s"]) == (WHALE, tx_hash, WHALE, "0x0")
    receipt = client.result("eth_getTransactionReceipt", tx_hash)
    assert (receipt["from"], receipt["status"]) == (WHALE, "0x1")
    assert client.result("eth_getBalance", RECEIVER, "latest") == "0x5"
    assert client.result("debug_traceTransaction", tx_hash)["failed"] is False
    assert client.result(f"{family}_stopImpersonatingAccount", WHALE) is None
    assert (
        client.ask("eth_sendTransaction", payment)["error"]["message"]
        == "unknown account: No Signer available"
    )
    assert len(client.result("eth_accounts")) == 10


@pytest.mark.parametrize("families", [["anvil", "hardhat"], ["hardhat", "anvil"]])
def test_an_account_stays_listed_if_both_names_impersonate_it(
    client: Client, families: list[str]
) -> None:
    for family in families:
        client.result(f"{family}_impersonateAccount", WHALE)
    assert client.result("eth_accounts")[10:] == [WHALE]
    client.result("hardhat_stopImpersonatingAccount", WHALE)
    client.result("hardhat_impersonateAccount", WHALE)
    assert len(client.result("eth_accounts")) == 10


def test_everybody_is_impersonated(client: Client) -> None:
    client.result("anvil_setBalance", WHALE, ETHER)
    assert client.result("anvil_autoImpersonateAccount", True) is None
    payment = {"from": WHALE, "to": RECEIVER, "value": "0x5", "gasPrice": hex(10**10)}
    sent = [client.result("eth_sendTransaction", payment) for _ in range(3)]
    shown = client.result("eth_getTransactionByHash", sent[2])
    assert (shown["nonce"], shown["type"], shown["from"]) == ("0x2", "0x0", WHALE)
    assert client.result("hardhat_autoImpersonateAccount", False) is None
    assert (
        client.ask("eth_sendTransaction", payment)["error"]["message"]
        == "unknown account: No Signer available"
    )


def test_an_unsigned_transaction_needs_no_impersonation(client: Client) -> None:
    payment = {"from": WHALE, "to": RECEIVER, "value": "0x5"}
    refused = client.ask("eth_sendUnsignedTransaction", {**payment, "gas": "0x5208"})["error"]
    assert (refused["code"], "insufficient funds" in refused["message"]) == (-32000, True)
    client.result("anvil_setBalance", WHALE, ETHER)
    tx_hash = client.result("eth_sendUnsignedTransaction", payment)
    assert client.result("eth_getTransactionReceipt", tx_hash)["from"] == WHALE


def test_a_receipt_comes_with_the_answer(client: Client) -> None:
    sender = client.result("eth_accounts")[0]
    receipt = client.result("eth_sendTransactionSync", {"from": sender, "to": RECEIVER})
    assert (receipt["status"], receipt["from"], receipt["blockNumber"]) == ("0x1", sender, "0x1")
    error = client.ask("eth_sendTransactionSync", {"from": WHALE, "to": RECEIVER})["error"]
    assert error["message"] == "unknown account: No Signer available"


def test_accounts_are_added_as_in_ganache(client: Client) -> None:
    assert client.result("evm_addAccount", WHALE, "") is True
    assert client.result("evm_addAccount", WHALE, "") is False
    assert client.result("eth_accounts")[10:] == [WHALE]
    assert client.result("evm_removeAccount", WHALE, "") is True
    assert client.result("evm_removeAccount", WHALE, "") is False


def test_a_transaction_is_filled_and_not_sent(client: Client) -> None:
    filled = client.result("eth_fillTransaction", {"from": WHALE, "to": RECEIVER})
    assert (filled["tx"]["gas"], filled["tx"]["nonce"]) == ("0x5208", "0x0")
    assert filled["tx"]["from"] == WHALE
    assert list(filled) == ["tx"]
    assert client.result("eth_blockNumber") == "0x0"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("anvil_impersonateAccount", ["0x12"]),
        ("anvil_impersonateAccount", []),
        ("anvil_autoImpersonateAccount", ["yes"]),
        ("eth_sendUnsignedTransaction", [{"from": WHALE, "nonce": hex(2**64)}]),
    ],
)
def test_bad_input_is_refused(client: Client, method: str, params: list) -> None:
    assert client.ask(method, *params)["error"]["code"] == -32602
    assert len(client.result("eth_accounts")) == 10


def test_a_signature_is_impersonated(client: Client) -> None:
    first, second = "0x" + "11" * 32 + "22" * 32 + "1b", "0x" + "33" * 65
    try:
        assert client.result("anvil_impersonateSignature", [first, WHALE]) is None
        assert client.result("anvil_impersonateSignature", second, WHALE) is None
        for given in ([first], ["0x11", WHALE], [first, "0x1"], 5):
            assert client.ask("anvil_impersonateSignature", given)["error"]["code"] == -32602
        assert client.ask("anvil_impersonateSignature", first)["error"]["code"] == -32602
        data = "0x" + "aa" * 32 + "00" * 31 + "1b" + "11" * 32 + "22" * 32
        found = client.result("eth_call", {"to": "0x" + "1".zfill(40), "data": data}, "latest")
        assert found == "0x" + WHALE[2:].zfill(64)
    finally:
        forget_impersonated_signatures()


@pytest.mark.parametrize("is_own", [True, False])
def test_what_nobody_has_to_recover_may_carry_authorizations(client: Client, is_own: bool) -> None:
    sender = client.result("eth_accounts")[0] if is_own else WHALE
    client.result("anvil_setBalance", WHALE, ETHER)
    client.result("anvil_impersonateAccount", WHALE)
    key = (7).to_bytes(32, "big")
    target = bytes.fromhex(RECEIVER[2:])
    signed = sign_authorization(key, chain_id=DEV_CHAIN_ID, address=target, nonce=0)
    listed = {
        "chainId": hex(signed.chain_id), "address": RECEIVER, "nonce": hex(signed.nonce),
        "yParity": hex(signed.y_parity), "r": hex(signed.r), "s": hex(signed.s),
    }  # fmt: skip
    sent = {"from": sender, "to": RECEIVER, "authorizationList": [listed]}
    tx_hash = client.result("eth_sendTransaction", sent)
    assert client.result("eth_getTransactionReceipt", tx_hash)["status"] == "0x1"
    signer = "0xd41c057fd1c78805aac12b0a94a405c0461a6fbb"
    assert client.result("eth_getCode", signer, "latest") == "0xef0100" + RECEIVER[2:]
