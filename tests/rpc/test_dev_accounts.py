"""Tests that the node signs and sends for its development accounts."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data

from fastevm.bench.node.launch import ServerThread
from fastevm.errors import install_command
from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.node import dev_node

from .test_dev_node import Client

RECEIVER = "0x" + "22" * 20


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Provides a client of a chain with 500 ms blocks."""
    live = ServerThread(dev_node(block_time_ms=500, slice_interval_ms=50))
    live.start()
    yield Client(live.url("preconf"))
    live.stop()


@pytest.fixture(scope="module")
def sender(client: Client) -> str:
    return str(client.result("eth_accounts")[0])


def test_a_payment_needs_nothing_but_its_ends(client: Client, sender: str) -> None:
    payment = {"from": sender, "to": RECEIVER, "value": "0x5"}
    tx_hash = client.result("eth_sendTransaction", payment)
    receipt = client.wait(lambda: client.result("eth_getTransactionReceipt", tx_hash))
    assert (receipt["status"], receipt["gasUsed"]) == ("0x1", "0x5208")
    assert client.result("eth_getBalance", RECEIVER, "pending") == "0x5"
    shown = client.result("eth_getTransactionByHash", tx_hash)
    assert (shown["from"], shown["type"], shown["gas"]) == (sender, "0x2", "0x5208")


def test_payments_sent_at_once_get_nonces_in_a_row(client: Client, sender: str) -> None:
    first = int(client.result("eth_getTransactionCount", sender, "pending"), 16)
    payment = {"from": sender, "to": RECEIVER}
    sent = [client.result("eth_sendTransaction", payment) for _ in range(5)]
    nonces = [client.result("eth_getTransactionByHash", tx_hash)["nonce"] for tx_hash in sent]
    assert [int(nonce, 16) for nonce in nonces] == list(range(first, first + 5))


def test_what_is_given_is_kept(client: Client, sender: str) -> None:
    given = {
        "from": sender,
        "to": RECEIVER,
        "gas": "0x7530",
        "gasPrice": "0x77359400",
        "nonce": "0x3e8",
        "input": "0x01",
    }
    signed = client.result("eth_signTransaction", given)
    assert {name: signed["tx"][name] for name in given} == given
    assert Account.recover_transaction(signed["raw"]).lower() == sender


def test_a_transaction_that_would_fail_is_not_sent(client: Client, sender: str) -> None:
    creation = {"from": sender, "data": "0x5f5ffd"}  # reverts immediately
    error = client.ask("eth_sendTransaction", creation)["error"]
    assert (error["code"], error["message"]) == (-32000, "execution reverted")


@pytest.mark.parametrize("method", ["eth_sendTransaction", "eth_signTransaction"])
def test_an_account_of_somebody_else_is_unknown(client: Client, method: str) -> None:
    error = client.ask(method, {"from": RECEIVER, "to": RECEIVER})["error"]
    assert (error["code"], error["message"]) == (-32000, "unknown account: No Signer available")


def test_accounts_are_never_locked(client: Client, sender: str) -> None:
    assert client.result("personal_listAccounts")[0] == sender
    assert client.result("personal_unlockAccount", sender, "", 300) is True
    assert client.result("personal_lockAccount", sender) is False
    error = client.ask("personal_unlockAccount", RECEIVER, "")["error"]
    assert error["message"] == "unknown account: No Signer available"
    payment = {"from": sender, "to": RECEIVER}
    assert len(client.result("personal_sendTransaction", payment, "")) == 66


MAIL = {
    "types": {
        "EIP712Domain": [{"name": "name", "type": "string"}],
        "Person": [{"name": "name", "type": "string"}, {"name": "wallets", "type": "address[]"}],
        "Mail": [{"name": "to", "type": "Person"}, {"name": "contents", "type": "bytes"}],
    },
    "primaryType": "Mail",
    "domain": {"name": "Ether Mail"},
    "message": {"to": {"name": "Bob", "wallets": [RECEIVER, RECEIVER]}, "contents": "0x1234"},
}


@pytest.mark.parametrize("version", ["", "_v3", "_v4"])
def test_typed_data_is_signed(client: Client, sender: str, version: str) -> None:
    for form in (MAIL, json.dumps(MAIL)):
        signature = client.result("eth_signTypedData" + version, sender, form)
        message = encode_typed_data(full_message=MAIL)
        assert Account.recover_message(message, signature=signature).lower() == sender


def test_the_domain_alone_is_signed_where_it_is_the_primary_type(
    client: Client, sender: str
) -> None:
    data = {"domain": {}, "primaryType": "EIP712Domain", "types": {"EIP712Domain": []}}
    signature = (
        "0xda87197eb020923476a6d0149ca90bc1c894251cc30b38e0dd2cdd48567e12386d3ed40a509397410a4fd2d66"
        "e1300a39ac42f828f8a5a2cb948b35c22cf29e81c"
    )  # anvil 1.7.1 returned this signature
    assert client.result("eth_signTypedData_v4", sender, data) == signature


def test_the_package_that_typed_data_needs_is_named(
    client: Client, sender: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastevm.rpc.methods.signing.find_spec", lambda name: None)
    error = client.ask("eth_signTypedData_v4", sender, MAIL)["error"]
    assert (error["code"], install_command("blobs") in error["message"]) == (-32000, True)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({**MAIL, "primaryType": "Letter"}, "cannot be encoded"),
        ({"types": {}}, "has no member primaryType"),
        ("{", "is not JSON"),
        (5, "cannot unmarshal number"),
    ],
)
def test_what_is_no_typed_data_is_refused(
    client: Client, sender: str, data: object, words: str
) -> None:
    error = client.ask("eth_signTypedData_v4", sender, data)["error"]
    assert error["code"] == -32602
    assert words in error["message"]


def test_another_chain_is_refused(client: Client, sender: str) -> None:
    payment = {"from": sender, "to": RECEIVER, "chainId": "0x1"}
    error = client.ask("eth_sendTransaction", payment)["error"]
    assert error["message"] == "chainId does not match node's (have=1, want=31337)"


@pytest.mark.parametrize("method", ["eth_sendTransaction", "eth_signTransaction"])
@pytest.mark.parametrize(
    "blobs", [{"blobVersionedHashes": ["0x01" + "00" * 31]}, {"maxFeePerBlobGas": "0x1"}]
)
def test_blobs_are_refused_and_not_left_out(
    client: Client, sender: str, method: str, blobs: dict[str, object]
) -> None:
    error = client.ask(method, {"from": sender, "to": RECEIVER, **blobs})["error"]
    message = "signing blob transactions not supported"
    assert (error["code"], error["message"]) == (-32000, message)


@pytest.mark.parametrize("message", [b"", b"hello", bytes(range(256))])
def test_a_signed_message_names_its_signer(client: Client, sender: str, message: bytes) -> None:
    text = "0x" + message.hex()
    signature = client.result("personal_sign", text, sender)
    assert signature == client.result("eth_sign", sender, text)
    signer = Account.recover_message(encode_defunct(message), signature=signature)
    assert signer.lower() == sender


@pytest.fixture
def waiting() -> Iterator[LocalNode]:
    """Provides a node that keeps transactions in the pool."""
    with LocalNode(accounts=2, no_mining=True) as node:
        yield node


def resend(node: LocalNode, *params: Any) -> dict[str, Any]:
    found = node.request("eth_getTransactionByHash", [node.request("eth_resend", [*params])])
    assert isinstance(found, dict)
    return found


def payment_of(node: LocalNode, **more: str) -> dict[str, str]:
    sender = node.request("eth_accounts", [])[0]
    return {"from": sender, "to": RECEIVER, "value": "0x5", "nonce": "0x0"} | more


GWEI = 10**9


def test_a_waiting_transaction_is_sent_again_with_another_price(waiting: LocalNode) -> None:
    payment = payment_of(waiting)
    first = waiting.request("eth_sendTransaction", [payment])
    found = resend(waiting, payment, hex(50 * GWEI))
    assert (found["nonce"], found["value"], found["to"]) == ("0x0", "0x5", RECEIVER)
    assert (found["type"], found["gas"]) == ("0x2", "0x5208")
    assert found["maxFeePerGas"] == found["maxPriorityFeePerGas"] == hex(50 * GWEI)
    assert waiting.request("eth_getTransactionByHash", [first]) is None
    assert waiting.request("txpool_status", []) == {"pending": "0x1", "queued": "0x0"}
    waiting.request("anvil_mine", [])
    assert waiting.request("eth_getTransactionReceipt", [found["hash"]])["status"] == "0x1"


def test_a_legacy_transaction_keeps_its_type_and_gets_another_gas_limit(
    waiting: LocalNode,
) -> None:
    payment = payment_of(waiting, gasPrice=hex(10 * GWEI))
    waiting.request("eth_sendTransaction", [payment])
    found = resend(waiting, payment, hex(20 * GWEI), "0x7530")
    assert (found["type"], found["gasPrice"], found["gas"]) == ("0x0", hex(20 * GWEI), "0x7530")


@pytest.mark.parametrize(
    ("more", "price", "message"),
    [
        ({"nonce": "0x1"}, 50 * GWEI, "transaction with nonce 1 not found"),
        ({"value": "0x6"}, 50 * GWEI, "transaction with nonce 0 not found"),
        ({"data": "0x01"}, 50 * GWEI, "transaction with nonce 0 not found"),
        ({}, 9 * GWEI, "replacement transaction underpriced"),
        ({"from": RECEIVER}, 50 * GWEI, "transaction with nonce 0 not found"),
    ],
)
def test_nothing_changes_if_a_transaction_cannot_be_sent_again(
    waiting: LocalNode, more: dict[str, str], price: int, message: str
) -> None:
    payment = payment_of(waiting, gasPrice=hex(10 * GWEI))
    sent = waiting.request("eth_sendTransaction", [payment])
    with pytest.raises(NodeError, match=message):
        waiting.request("eth_resend", [payment | more, hex(price)])
    assert waiting.request("eth_getTransactionByHash", [sent])["gasPrice"] == hex(10 * GWEI)


def test_a_transaction_to_send_again_is_named_by_its_nonce(waiting: LocalNode) -> None:
    payment = payment_of(waiting)
    del payment["nonce"]
    with pytest.raises(NodeError, match="missing transaction nonce in transaction spec"):
        waiting.request("eth_resend", [payment, "0x1"])
