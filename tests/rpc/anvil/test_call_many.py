"""Tests methods that simulate several calls, each on the state after the call before it."""

from typing import Any

import pytest
from eth_account import Account
from eth_utils import keccak

from .scenario import NOBODY, SENDER, Side

KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
SLOT = "0x" + "00" * 32


def test_outputs_and_failures_by_bundle(ours: Side) -> None:
    echo = {"from": SENDER, "to": ours.contract("echo"), "value": "0x5"}
    fails = {"from": SENDER, "to": ours.contract("fails")}
    halts = {"from": SENDER, "to": ours.contract("halts"), "gas": "0x10000"}
    bundles = [{"transactions": [echo, fails]}, {"transactions": [halts]}, {"transactions": []}]
    assert ours.result("eth_callMany", bundles) == [
        [{"value": "0x" + f"{5:064x}"}, {"error": "execution reverted: no"}],
        [{"error": "invalid opcode: INVALID"}],
        [],
    ]


def test_calls_see_what_the_ones_before_them_did(ours: Side) -> None:
    # counts how often it is called
    counter = {NOBODY: {"code": "0x5f546001018060005560005260206000f3"}}
    call = {"from": SENDER, "to": NOBODY}
    bundles = [{"transactions": [call, call]}, {"transactions": [call]}]
    latest = {"blockNumber": "latest"}
    found = ours.result("eth_callMany", bundles, latest, counter)
    assert [[int(item["value"], 16) for item in bundle] for bundle in found] == [[1, 2], [3]]
    assert ours.result("eth_getStorageAt", NOBODY, SLOT, "latest") == SLOT


def test_a_bundle_has_its_own_block(ours: Side) -> None:
    code = {NOBODY: {"code": "0x4360005260206000f3"}}  # returns NUMBER
    call = {"to": NOBODY}
    bundles = [
        {"transactions": [call], "blockOverride": {"number": "0x1234"}},
        {"transactions": [call], "blockOverride": {"number": "0x5678"}},
    ]
    found = ours.result("eth_callMany", bundles, None, code)
    assert [int(item["value"], 16) for (item,) in found] == [0x1234, 0x5678]


def test_a_state_inside_a_block(ours: Side) -> None:
    block = ours.block("calls")
    caller = ours.contract("caller")
    call = {"to": caller, "from": SENDER, "value": "0xa"}
    storage = []
    for index in (0, 1, -1):
        context = {"blockNumber": block, "transactionIndex": index}
        config = {"tracer": "prestateTracer"}
        ((trace,),) = ours.result(
            "debug_traceCallMany", [{"transactions": [call]}], context, config
        )
        storage.append(int(trace[caller]["storage"][SLOT], 16))
    assert storage == [0, 1, 1]


def test_traces_by_bundle(ours: Side) -> None:
    call = {"from": SENDER, "to": ours.contract("echo")}
    bundles = [{"transactions": [call, call]}, {"transactions": [call]}]
    config = {"tracer": "callTracer"}
    alone = ours.result("debug_traceCall", call, "latest", config)
    found = ours.result("debug_traceCallMany", bundles, {"blockNumber": "latest"}, config)
    assert found == [[alone, alone], [alone]]
    assert ours.result("debug_traceCallMany", [], None, config) == []


@pytest.mark.parametrize(
    "params",
    [
        [5],
        [[5]],
        [[{"transactions": 5}]],
        [[{"transactions": [{}] * 1001}]],
        [[], {"transactionIndex": -2}],
        [[], {"transactionIndex": "0x0"}],
        [[], 5],
    ],
)
def test_what_is_refused(ours: Side, params: list[Any]) -> None:
    assert ours.ask("eth_callMany", *params)["error"]["code"] == -32602


def test_an_index_beyond_the_block(ours: Side) -> None:
    context = {"blockNumber": ours.block("calls"), "transactionIndex": 2}
    error = ours.ask("eth_callMany", [], context)["error"]
    assert error == {"code": -32000, "message": "transaction index 2 out of range: 1 transactions"}


def signed(side: Side, place: int, **fields: Any) -> str:
    nonce = int(side.result("eth_getTransactionCount", SENDER, "latest"), 16) + place
    transaction = {
        "chainId": 31337, "nonce": nonce, "gas": 200_000, "value": 0, "data": "0x",
        "maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**9, **fields,
    }  # fmt: skip
    return "0x" + bytes(Account.sign_transaction(transaction, KEY).raw_transaction).hex()


def test_a_bundle_of_signed_transactions(ours: Side) -> None:
    raws = [
        signed(ours, 0, to=bytes.fromhex(NOBODY[2:]), value=7),
        signed(ours, 1, to=bytes.fromhex(ours.contract("fails")[2:])),
    ]
    number = ours.result("eth_blockNumber")
    wanted = {"txs": raws, "blockNumber": "0x100", "stateBlockNumber": "latest"}
    found = ours.result("eth_callBundle", wanted)
    paid, failed = found["results"]
    assert (paid["gasUsed"], paid["value"], paid["toAddress"]) == (21_000, "0x", NOBODY)
    assert (paid["gasPrice"], paid["gasFees"]) == (str(10**9), str(21_000 * 10**9))
    assert paid["coinbaseDiff"] == paid["gasFees"]
    assert paid["fromAddress"] == SENDER
    assert failed["error"] == "execution reverted: no"
    assert failed["revert"].startswith("0x08c379a0")
    hashes = [keccak(hexstr=raw) for raw in raws]
    assert [item["txHash"] for item in found["results"]] == ["0x" + each.hex() for each in hashes]
    assert found["bundleHash"] == "0x" + keccak(b"".join(hashes)).hex()
    assert found["totalGasUsed"] == paid["gasUsed"] + failed["gasUsed"]
    assert found["bundleGasPrice"] == str(10**9)
    assert found["ethSentToCoinbase"] == "0"
    assert found["stateBlockNumber"] == int(number, 16)
    assert ours.result("eth_blockNumber") == number


def test_the_block_of_a_bundle(ours: Side) -> None:
    # stores NUMBER, TIMESTAMP and BASEFEE in memory, and returns them
    code = "0x43600052426020524860405260606000f3"
    raw = signed(ours, 0, data=code)
    wanted = {
        "txs": [raw], "blockNumber": 300, "timestamp": 2**33, "baseFee": 9, "coinbase": NOBODY,
        "gasLimit": 10**7,
    }  # fmt: skip
    (result,) = ours.result("eth_callBundle", wanted)["results"]
    assert result["value"] == "0x" + "".join(f"{each:064x}" for each in (300, 2**33, 9))
    assert result["toAddress"] is None


@pytest.mark.parametrize(
    "bundle",
    [
        5,
        {},
        {"txs": [], "blockNumber": "0x1"},
        {"txs": ["0x00"]},
        {"txs": ["0x00"], "blockNumber": "0x0"},
        {"txs": ["0x00"], "blockNumber": "0x1"},
        {"txs": ["0x"], "blockNumber": "0x1"},
        {"txs": ["0x00"], "blockNumber": "0x1", "baseFee": "x"},
    ],
)
def test_bundles_that_are_refused(ours: Side, bundle: Any) -> None:
    assert ours.ask("eth_callBundle", bundle)["error"]["code"] == -32602


def test_a_transaction_that_cannot_run_is_the_error_of_its_bundle(ours: Side) -> None:
    bundle = {"txs": [signed(ours, 5)], "blockNumber": "0x100"}
    error = ours.ask("eth_callBundle", bundle)["error"]
    assert error["code"] == -32000
    assert "nonce too high" in error["message"]
