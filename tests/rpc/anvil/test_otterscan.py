"""Tests that ots_* returns what anvil returns, except where anvil omits parts of the API."""

from typing import Any

import pytest

from .scenario import SENDER, Side, without
from .test_traces import SENT

CREATED = ("CREATE", "CREATE2", "SELFDESTRUCT")
# Members whose values differ between the nodes: prices, times, hashes, genesis values.
NAMES = """
baseFeePerGas blobGasPrice blockHash blockTimestamp effectiveGasPrice excessBlobGas extraData
gasLimit gasPrice hash maxFeePerGas maxPriorityFeePerGas miner mixHash parentBeaconBlockRoot
parentHash r receiptsRoot s size stateRoot timestamp totalDifficulty totalFees transactionHash
transactionsRoot v yParity
"""
OWN = frozenset(NAMES.split())
UNKNOWN = "0x" + "12" * 32


def test_the_level(ours: Side, anvil: Side) -> None:
    assert ours.result("ots_getApiLevel") == anvil.result("ots_getApiLevel")


def test_code(ours: Side) -> None:
    for block in ("latest", ours.block("echo"), int(ours.block("echo"), 16)):
        assert ours.result("ots_hasCode", ours.contract("echo"), block) is True
    assert ours.result("ots_hasCode", ours.contract("echo"), 0) is False
    assert ours.result("ots_hasCode", SENDER, "latest") is False


@pytest.mark.parametrize("name", SENT)
def test_entries_operations_and_errors(ours: Side, anvil: Side, name: str) -> None:
    method = "ots_getTransactionError"
    assert ours.result(method, ours.hash(name)) == anvil.result(method, anvil.hash(name))
    method = "ots_getInternalOperations"
    operations = ours.result(method, ours.hash(name))
    if name == "short life":  # anvil does not list the creation of the contract
        assert operations.pop(1)["type"] == 2
    assert operations == anvil.result(method, anvil.hash(name))
    found = ours.result("ots_traceTransaction", ours.hash(name))
    calls = [entry for entry in found if entry["type"] not in CREATED]
    assert calls == anvil.result("ots_traceTransaction", anvil.hash(name))


def test_creations_have_entries(ours: Side) -> None:
    created = ours.result("ots_traceTransaction", ours.hash("short life"))[1:]
    assert [(entry["type"], entry["depth"]) for entry in created] == [
        ("CREATE", 1),
        ("SELFDESTRUCT", 2),
    ]
    assert created[0]["to"] == created[1]["from"]


def test_unknown_transactions(ours: Side, anvil: Side) -> None:
    for method in ("ots_traceTransaction", "ots_getTransactionError"):
        assert ours.result(method, UNKNOWN) == anvil.result(method, UNKNOWN)
    assert ours.ask("ots_getInternalOperations", UNKNOWN)["error"]["code"] == -32000


@pytest.mark.parametrize(("block", "form"), [("calls", str), ("calls", int), ("transfer", str)])
def test_blocks(ours: Side, anvil: Side, block: str, form: Any) -> None:
    found, wanted = (
        side.result("ots_getBlockDetails", form_of(side.block(block), form))
        for side in (ours, anvil)
    )
    assert without(found, OWN) == without(wanted, OWN)
    receipt = ours.receipts[block]
    fees = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
    assert found["totalFees"] == hex(fees)
    assert ours.result("ots_getBlockDetailsByHash", receipt["blockHash"]) == found


def form_of(number: str, form: Any) -> Any:
    return number if form is str else int(number, 16)


def test_pages_of_a_block(ours: Side, anvil: Side) -> None:
    found, wanted = (
        side.result("ots_getBlockTransactions", int(side.block("calls"), 16), 0, 10)
        for side in (ours, anvil)
    )
    assert without(found, OWN) == without(wanted, OWN)
    assert found["receipts"][0]["timestamp"] == found["fullblock"]["timestamp"]
    beyond = ours.result("ots_getBlockTransactions", ours.block("calls"), 1, 10)
    assert (beyond["receipts"], beyond["fullblock"]["transactions"]) == ([], [])
    assert beyond["fullblock"]["transactionCount"] == 1


def test_blocks_that_do_not_exist(ours: Side) -> None:
    for method, *params in (
        ("ots_getBlockDetails", "0xfff"),
        ("ots_getBlockDetailsByHash", UNKNOWN),
        ("ots_getBlockTransactions", 4095, 0, 10),
    ):
        assert ours.ask(method, *params)["error"] == {"code": -32000, "message": "block not found"}


PAGES = [
    (SENDER, 0, 3),
    (SENDER, 3, 3),
    (SENDER, 2, 3),
    (SENDER, 16, 2),
    (SENDER, 17, 2),
    (SENDER, 40, 2),
    ("fails", 0, 25),
    ("echo", 7, 1),
    ("caller", 2, 100),
]


@pytest.mark.parametrize("direction", ["Before", "After"])
@pytest.mark.parametrize(("address", "block", "size"), PAGES)
def test_searches(
    ours: Side, anvil: Side, direction: str, address: str, block: int, size: int
) -> None:
    found, wanted = (
        side.result(
            f"ots_searchTransactions{direction}",
            side.contract(address) if address in side.receipts else address,
            block,
            size,
        )
        for side in (ours, anvil)
    )
    assert without(found, OWN) == without(wanted, OWN)
    for transaction, receipt in zip(found["txs"], found["receipts"], strict=True):
        assert transaction["hash"] == receipt["transactionHash"]


def test_who_gets_the_balance_of_a_self_destruction_has_a_part(ours: Side) -> None:
    """The transaction is listed for a beneficiary of SELFDESTRUCT. anvil omits it."""
    page = ours.result("ots_searchTransactionsBefore", ours.contract("echo"), 0, 25)
    names = ("short life", "destroyed", "calls", "echo")
    assert [entry["hash"] for entry in page["txs"]] == [ours.hash(name) for name in names]


def test_the_oldest_page_is_the_last(ours: Side) -> None:
    page = ours.result("ots_searchTransactionsBefore", SENDER, 1, 3)
    assert page == {"txs": [], "receipts": [], "firstPage": False, "lastPage": True}


@pytest.mark.parametrize("nonce", [0, 5, "0x5", 999])
def test_hashes_by_sender(ours: Side, nonce: Any) -> None:
    quantity = nonce if isinstance(nonce, str) else hex(nonce)
    wanted = ours.result("eth_getTransactionBySenderAndNonce", SENDER, quantity)
    found = ours.result("ots_getTransactionBySenderAndNonce", SENDER, nonce)
    assert found == (wanted and wanted["hash"])


def test_creators(ours: Side) -> None:
    for name in ("echo", "caller", "nursery"):
        assert ours.result("ots_getContractCreator", ours.contract(name)) == {
            "hash": ours.hash(name),
            "creator": SENDER,
        }
    child = ours.result("trace_transaction", ours.hash("calls"))[-1]["result"]["address"]
    assert ours.result("ots_getContractCreator", child) == {
        "hash": ours.hash("calls"),
        "creator": ours.contract("caller"),
    }
    assert ours.result("ots_getContractCreator", SENDER) is None
