"""Tests calls and simulations on ``pending``: they apply its environment and state exactly once."""

from collections.abc import Iterator

import pytest
from eth_utils import to_checksum_address

from fastevm.bench.node.launch import ServerThread
from fastevm.node import dev_node
from tests.block_times import UNHURRIED_MS

from .test_dev_node import RECEIVER, SENDER, Client

# returns NUMBER, TIMESTAMP and BASEFEE
ENVIRONMENT = "0x435f52426020524860405260605ff3"
# Init code of a contract that increments slot 0 and returns the new value.
COUNTER = "5f546001018060005560005260206000f3"
COUNTER_INIT = f"0x70{COUNTER}5f526011600ff3"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Provides a client of a node whose block does not end during a test."""
    server = ServerThread(dev_node(block_time_ms=UNHURRIED_MS, slice_interval_ms=50))
    server.start()
    client = Client(server.url("preconf"))
    yield client
    server.stop()


@pytest.fixture(scope="module")
def counter(client: Client) -> str:
    """Provides a contract that is deployed, and called once, only in the pending block."""
    address = client.preconfirmed(client.send(data=COUNTER_INIT))["contractAddress"]
    client.preconfirmed(client.send(to=to_checksum_address(address)))
    assert client.result("eth_getCode", address, "latest") == "0x"
    return address


def test_the_environment_of_a_call_is_that_of_the_pending_block(client: Client) -> None:
    override = {RECEIVER: {"code": ENVIRONMENT}}
    found = client.result("eth_call", {"to": RECEIVER}, "pending", override)
    block = client.result("eth_getBlockByNumber", "pending", False)
    words = [int(found[at : at + 64], 16) for at in range(2, len(found), 64)]
    assert words[:2] == [int(block[name], 16) for name in ("number", "timestamp")]
    # BASEFEE is 0 if the call has no gas price
    assert words[2] in (0, int(block["baseFeePerGas"], 16))
    priced = {"to": RECEIVER, "from": SENDER, "gasPrice": hex(10**10), "gas": "0x186a0"}
    found = client.result("eth_call", priced, "pending", override)
    assert int(found[-64:], 16) == int(block["baseFeePerGas"], 16)


def test_what_the_caller_overrides_wins_over_what_is_pre_confirmed(
    client: Client, counter: str
) -> None:
    call = {"to": counter}
    assert int(client.result("eth_call", call, "pending"), 16) == 2
    slot = {counter: {"stateDiff": {"0x" + "00" * 32: "0x" + "63".zfill(64)}}}
    assert int(client.result("eth_call", call, "pending", slot), 16) == 0x64
    code = {counter: {"code": ENVIRONMENT}}
    assert len(client.result("eth_call", call, "pending", code)) == 2 + 3 * 64


def test_what_a_simulated_block_writes_stays_for_the_next(client: Client, counter: str) -> None:
    calls = {"calls": [{"from": SENDER, "to": counter}, {"from": SENDER, "to": counter}]}
    blocks = client.result("eth_simulateV1", {"blockStateCalls": [calls, calls]}, "pending")
    found = [int(call["returnData"], 16) for block in blocks for call in block["calls"]]
    assert found == [2, 3, 4, 5]
    pending = client.result("eth_getBlockByNumber", "pending", False)
    assert int(blocks[0]["number"], 16) == int(pending["number"], 16) + 1
    assert int(client.result("eth_call", {"to": counter}, "pending"), 16) == 2


def test_storage_code_and_receipts_of_pending_are_pre_confirmed(
    client: Client, counter: str
) -> None:
    assert client.result("eth_getCode", counter, "pending") == "0x" + COUNTER
    assert int(client.result("eth_getStorageAt", counter, "0x0", "pending"), 16) == 1
    receipts = client.result("eth_getBlockReceipts", "pending")
    pending = client.result("eth_getBlockByNumber", "pending", True)
    hashes = [receipt["transactionHash"] for receipt in receipts]
    assert hashes == [item["hash"] for item in pending["transactions"]]
    assert {receipt["blockHash"] for receipt in receipts} == {"0x" + "00" * 32}
    assert {item["blockHash"] for item in pending["transactions"]} == {None}
