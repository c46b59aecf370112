"""Tests over HTTP that a development chain accepts, pre-confirms and seals transactions."""

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eth_account import Account
from eth_utils import to_checksum_address

from fastevm.bench.node.launch import ServerThread
from fastevm.node import dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body
from tests.max_wait import MAX_WAIT

CHAIN_ID = 31_337
KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
SENDER = Account.from_key(KEY).address
RECEIVER = "0x" + "11" * 20
# ^Init code of a contract that emits a log whenever it is called.
LOGGER_CODE = "0x5f5fa0600160005260016000f3"
LOGGER_INIT = "0x6c" + LOGGER_CODE[2:] + "600052600d6013f3"


class Client:
    """A client of a live server that uses one dialect."""

    def __init__(self, url: str) -> None:
        self.client = JsonRpcClient(url, timeout=MAX_WAIT)

    def ask(self, method: str, *params: Any) -> Any:
        """Returns the whole answer."""
        return json.loads(self.client.send(request_body(method, params)))

    def result(self, method: str, *params: Any) -> Any:
        """Returns the result of a call. Fails if the call fails."""
        answer = self.ask(method, *params)
        assert "error" not in answer, answer
        return answer["result"]

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Evaluates ``condition`` until it is true. Returns its value."""
        for _ in range(round(MAX_WAIT / 0.03)):
            value = condition()
            if value:
                return value
            time.sleep(0.03)
        raise AssertionError("nothing happened in time")

    def send(self, **fields: Any) -> str:
        """Signs and submits a transaction of the first account. Returns its hash."""
        nonce = int(self.result("eth_getTransactionCount", SENDER, "pending"), 16)
        transaction = {
            "chainId": CHAIN_ID,
            "nonce": nonce,
            "gas": 200_000,
            "maxFeePerGas": 10**10,
            "maxPriorityFeePerGas": 10**9,
            "value": 0,
            "data": "0x",
            **fields,
        }
        signed = Account.sign_transaction(transaction, KEY)
        raw = "0x" + signed.raw_transaction.hex().removeprefix("0x")
        return self.result("eth_sendRawTransaction", raw)

    def receipt(self, tx_hash: str) -> Any:
        """Waits for a receipt. In this client's dialect it exists when the block is sealed."""
        return self.wait(lambda: self.result("eth_getTransactionReceipt", tx_hash))

    def preconfirmed(self, tx_hash: str) -> Any:
        """Waits for the receipt of a transaction in the pending block."""
        return self.wait(
            lambda: [
                receipt
                for receipt in self.result("eth_getBlockReceipts", "pending")
                if receipt["transactionHash"] == tx_hash
            ]
        )[0]

    def sealed(self, tx_hash: str) -> Any:
        """Waits for a receipt in a canonical block."""

        def in_a_block() -> Any:
            receipt = self.result("eth_getTransactionReceipt", tx_hash)
            return receipt if receipt and int(receipt["blockHash"], 16) else None

        return self.wait(in_a_block)


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    server = ServerThread(dev_node(block_time_ms=1000, slice_interval_ms=100))
    server.start()
    yield Client(server.url("preconf"))
    server.stop()


def test_a_transfer_is_pre_confirmed_and_then_sealed(client: Client) -> None:
    before = int(client.result("eth_getBalance", RECEIVER, "latest"), 16)
    tx_hash = client.send(to=RECEIVER, value=5, gas=21_000)
    receipt = client.receipt(tx_hash)
    assert receipt["status"] == "0x1"
    assert int(client.result("eth_getBalance", RECEIVER, "pending"), 16) == before + 5
    sealed = client.sealed(tx_hash)
    assert int(client.result("eth_getBalance", RECEIVER, "latest"), 16) == before + 5
    places = ("blockHash", "preconfirmed")
    same = {name: value for name, value in receipt.items() if name not in places}
    assert {name: sealed[name] for name in same} == same
    block = client.result("eth_getBlockByHash", sealed["blockHash"], True)
    found = block["transactions"][int(sealed["transactionIndex"], 16)]
    assert found == client.result("eth_getTransactionByHash", tx_hash)


def test_pending_nonces_go_up_before_the_block_is_sealed(client: Client) -> None:
    start = int(client.result("eth_getTransactionCount", SENDER, "pending"), 16)
    for step in range(1, 4):
        client.receipt(client.send(to=RECEIVER, value=1, gas=21_000))
        assert int(client.result("eth_getTransactionCount", SENDER, "pending"), 16) == start + step


def test_transactions_sent_at_once_get_one_nonce_after_another(client: Client) -> None:
    hashes = [client.send(to=RECEIVER, value=1, gas=21_000) for _ in range(20)]
    assert len({int(client.receipt(item)["blockNumber"], 16) for item in hashes}) <= 2
    sent = [client.result("eth_getTransactionByHash", item)["nonce"] for item in hashes]
    first = int(sent[0], 16)
    assert [int(nonce, 16) for nonce in sent] == list(range(first, first + 20))
    assert int(client.result("eth_getTransactionCount", SENDER, "pending"), 16) == first + 20


def test_pending_logs_become_canonical_logs(client: Client) -> None:
    created = client.sealed(client.send(data=LOGGER_INIT))["contractAddress"]
    assert client.result("eth_getCode", created, "latest") == LOGGER_CODE
    tx_hash = client.send(to=to_checksum_address(created))
    receipt = client.receipt(tx_hash)
    both = {"fromBlock": receipt["blockNumber"], "toBlock": "pending", "address": created}

    def ours() -> list[Any]:
        logs = client.result("eth_getLogs", both) if canonical() else pending()
        return [entry for entry in logs if entry["transactionHash"] == tx_hash]

    def canonical() -> bool:
        head = int(client.result("eth_blockNumber"), 16)
        return head >= int(receipt["blockNumber"], 16)

    def pending() -> list[Any]:
        only = {"fromBlock": "pending", "toBlock": "pending", "address": created}
        return client.result("eth_getLogs", only)

    assert len(client.wait(ours)) == 1
    client.sealed(tx_hash)
    (entry,) = [e for e in client.result("eth_getLogs", both) if e["transactionHash"] == tx_hash]
    assert int(entry["blockHash"], 16)


def test_a_pending_call_sees_the_pending_block(client: Client) -> None:
    number_code = {RECEIVER: {"code": "0x4360005260206000f3"}}
    latest = client.result("eth_call", {"to": RECEIVER}, "latest", number_code)
    pending = client.result("eth_call", {"to": RECEIVER}, "pending", number_code)
    assert int(pending, 16) > int(latest, 16)


def test_simulation_on_pending_starts_from_the_pre_confirmed_state(client: Client) -> None:
    client.receipt(client.send(to=RECEIVER, value=7, gas=21_000))
    expected = client.result("eth_getBalance", RECEIVER, "pending")
    balance_code = "0x73" + RECEIVER[2:] + "3160005260206000f3"
    other = "0x" + "cd" * 20
    payload = {
        "blockStateCalls": [
            {"stateOverrides": {other: {"code": balance_code}}, "calls": [{"to": other}]},
            {"calls": [{"to": other}]},
        ]
    }
    blocks = client.result("eth_simulateV1", payload, "pending")
    for block in blocks:
        assert int(block["calls"][0]["returnData"], 16) == int(expected, 16)
        assert block["stateRoot"] == "0x" + "00" * 32
    assert int(blocks[1]["number"], 16) == int(blocks[0]["number"], 16) + 1
    assert int(blocks[1]["timestamp"], 16) == int(blocks[0]["timestamp"], 16) + 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nonce": 0}, "nonce too low"),
        ({"value": 10**30}, "insufficient funds for gas * price + value"),
    ],
)
def test_rejections_have_the_exact_words(
    client: Client, fields: dict[str, Any], message: str
) -> None:
    client.sealed(client.send(to=RECEIVER, value=1, gas=21_000))
    with pytest.raises(AssertionError, match=f"'{re.escape(message)}'"):
        client.send(to=RECEIVER, gas=21_000, **fields)


def test_a_resubmission_is_already_known_and_a_cheap_replacement_refused(client: Client) -> None:
    nonce = int(client.result("eth_getTransactionCount", SENDER, "pending"), 16) + 5
    fields = {"to": RECEIVER, "gas": 21_000, "nonce": nonce}
    client.send(**fields)
    with pytest.raises(AssertionError, match="'already known'"):
        client.send(**fields)
    with pytest.raises(AssertionError, match="'replacement transaction underpriced'"):
        client.send(**fields, maxFeePerGas=10**10 + 1, maxPriorityFeePerGas=10**9 + 1)
    client.send(**fields, maxFeePerGas=11 * 10**9, maxPriorityFeePerGas=11 * 10**8)
    status = client.result("txpool_status")
    assert status["queued"] == "0x1"
