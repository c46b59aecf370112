"""Tests methods of anvil that set token balances and replace blocks, over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

from fastevm import keccak256
from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node

from .test_dev_node import RECEIVER, Client

TOKEN, ALICE, BOB = ("0x" + byte * 20 for byte in ("70", "a1", "b0"))
# returns the value of the slot keccak256(first argument, second argument)
READS_TWO = "0x6004355f5260243560205260405f20545f5260205ff3"


@pytest.fixture
def client() -> Iterator[Client]:
    live = ServerThread(dev_node(mining=Mining.INSTANT))
    live.start()
    yield Client(live.url("geth"))
    live.stop()


def asked(client: Client, *arguments: str) -> int:
    data = "0x70a08231" + "".join(argument[2:].zfill(64) for argument in arguments)
    return int(client.result("eth_call", {"to": TOKEN, "data": data}), 16)


@pytest.mark.parametrize("name", ["anvil_dealERC20", "hardhat_dealERC20", "anvil_setERC20Balance"])
def test_a_balance_is_dealt(client: Client, name: str) -> None:
    client.result("anvil_setCode", TOKEN, READS_TWO)
    client.result(name, ALICE, TOKEN, "0x7")
    assert (asked(client, ALICE), asked(client, BOB)) == (7, 0)
    client.result(name, ALICE, TOKEN, "1000000000000000000000")
    assert asked(client, ALICE) == 10**21


def test_an_allowance_is_set(client: Client) -> None:
    client.result("anvil_setCode", TOKEN, READS_TWO)
    assert client.result("anvil_setERC20Allowance", ALICE, BOB, TOKEN, hex(2**256 - 1)) is None
    assert (asked(client, ALICE, BOB), asked(client, BOB, ALICE)) == (2**256 - 1, 0)


def test_an_account_without_a_token_is_refused(client: Client) -> None:
    error = client.ask("anvil_dealERC20", ALICE, BOB, "0x7")["error"]
    assert error["code"] == -32602
    assert f"no slot that {BOB} reads holds what it returns" in error["message"]


def test_blocks_are_replaced(client: Client) -> None:
    sender = client.result("eth_accounts")[0]
    payment = {"from": sender, "to": RECEIVER, "value": "0x1"}
    hashes = [client.result("eth_sendTransaction", payment) for _ in range(3)]
    raw = client.result("eth_signTransaction", {**payment, "value": "0x9", "nonce": "0x2"})["raw"]
    pairs = [[{**payment, "value": "0x7"}, 0], [raw, 1]]
    assert client.result("anvil_reorg", 2, pairs) is None
    assert client.result("eth_blockNumber") == "0x3"
    assert client.result("eth_getBalance", RECEIVER, "latest") == hex(1 + 7 + 9)
    found = [client.result("eth_getTransactionByHash", item) for item in hashes]
    assert [item is None for item in found] == [False, True, True]
    assert client.result("anvil_rollback", 2) is None
    assert client.result("eth_blockNumber") == "0x1"
    assert client.result("anvil_rollback") is None
    assert client.result("eth_getBalance", RECEIVER, "latest") == "0x0"


def test_the_head_is_set(client: Client) -> None:
    client.result("anvil_mine", 3)
    assert client.result("debug_setHead", "0x1") is None
    assert client.result("eth_blockNumber") == "0x1"


def test_storage_is_given_in_ranges_as_it_was_inside_a_block(client: Client) -> None:
    def ranged(block: str, index: int, start: str, count: int) -> Any:
        return client.result("debug_storageRangeAt", block, index, TOKEN, start, count)

    owner = client.result("eth_accounts")[0]
    # stores the second calldata word in the slot of the first
    client.result("anvil_setCode", TOKEN, "0x6020355f3555")
    client.result("evm_setAutomine", False)
    words = [f"{slot:064x}{slot + 5:064x}" for slot in range(3)]
    hashes = [
        client.result("eth_sendTransaction", {"from": owner, "to": TOKEN, "data": "0x" + data})
        for data in words
    ]
    client.result("evm_mine")
    block = client.result("eth_getTransactionReceipt", hashes[0])["blockHash"]
    slots = sorted(range(3), key=lambda slot: keccak256(slot.to_bytes(32)))
    paths = ["0x" + keccak256(slot.to_bytes(32)).hex() for slot in slots]
    entries = {
        path: {"key": f"0x{slot:064x}", "value": f"0x{slot + 5:064x}"}
        for path, slot in zip(paths, slots, strict=True)
    }
    client.result("evm_mine")
    last = client.result("eth_getBlockByNumber", "latest", False)["hash"]
    assert ranged(last, 0, "0x00", 9) == {"storage": entries, "nextKey": None}
    assert list(ranged(last, 0, "0x", 2)["storage"]) == paths[:2]
    assert ranged(last, 0, "0x", 2)["nextKey"] == paths[2]
    assert list(ranged(last, 0, paths[1], 9)["storage"]) == paths[1:]
    assert [len(ranged(block, index, "0x", 9)["storage"]) for index in range(3)] == [0, 1, 2]
    error = client.ask("debug_storageRangeAt", block, 3, TOKEN, "0x", 9)["error"]
    assert error == {
        "code": -32000,
        "message": f"transaction index 3 out of range for block {block}",
    }


def test_an_impersonated_account_sends_in_a_replaced_block(client: Client) -> None:
    client.result("anvil_autoImpersonateAccount", True)
    client.result("anvil_setBalance", ALICE, hex(10**18))
    client.result("anvil_mine", 1)
    pairs = [[{"from": ALICE, "to": BOB}, 0], [{"from": ALICE, "to": BOB}, 0]]
    assert client.result("anvil_reorg", {"depth": 1, "txBlockPairs": pairs}) is None
    block = client.result("eth_getBlockByNumber", "latest", True)
    assert [(item["from"], item["nonce"]) for item in block["transactions"]] == [
        (ALICE, "0x0"),
        (ALICE, "0x1"),
    ]


@pytest.mark.parametrize("impersonates", [False, True])
def test_delegations_in_a_replaced_block(client: Client, impersonates: bool) -> None:
    sender = ALICE if impersonates else client.result("eth_accounts")[0]
    client.result("anvil_autoImpersonateAccount", impersonates)
    client.result("anvil_setBalance", sender, hex(10**18))
    # The base fee falls in these blocks, and is higher on the branch that replaces them.
    client.result("anvil_mine", 4)
    authorization = {"chainId": "0x0", "address": BOB, "nonce": "0x0", "yParity": "0x0"}
    fields = {"from": sender, "to": BOB, "gas": "0x30d40"}
    fields["authorizationList"] = [authorization | {"r": "0x1", "s": "0x1"}]
    assert client.result("anvil_reorg", 4, [[fields, 0]]) is None
    (sent,) = client.result("eth_getBlockByNumber", "0x1", True)["transactions"]
    assert (sent["type"], len(sent["authorizationList"])) == ("0x4", 1)
    error = client.ask("anvil_reorg", 1, [[{**fields, "gasPrice": hex(10**11)}, 0]])["error"]
    assert error == {
        "code": -32602,
        "message": "gas_price does not go with a transaction of two fee caps",
    }


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("anvil_rollback", [5], "depth 5 of a chain at block 0, limit 0"),
        ("anvil_reorg", [1, []], "depth 1 of a chain at block 0, limit 0"),
        ("debug_setHead", ["0x1"], "block 1 is above the head 0"),
        ("anvil_reorg", [0, [["0x00", 0]]], "expected"),
        ("anvil_reorg", [0, [[5, 0]]], "argument 1"),
        ("anvil_reorg", [0, "all"], "argument 1"),
        ("anvil_reorg", [{}], "no member depth"),
    ],
)
def test_what_cannot_be_rewritten_is_refused(
    client: Client, method: str, params: list, words: str
) -> None:
    error = client.ask(method, *params)["error"]
    assert error["code"] == -32602
    assert words in error["message"]
    assert client.result("eth_blockNumber") == "0x0"
