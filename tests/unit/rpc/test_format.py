"""Tests members of blocks, transactions and receipts by fork, against recorded answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from eth_utils import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.primitives.hex import checksum_address
from fastevm.rpc.view import View
from fastevm.rpc_types.transactions import transaction_json

from .fakes import RECORDED, FakeChain, FakeNode, header, recorded_blocks

A = b"\xaa" * 20
BLOCKS = {block.number: block for block in recorded_blocks()}
NODE = FakeNode(FakeChain(list(BLOCKS.values())))
LATER = ("baseFeePerGas", "withdrawals", "withdrawalsRoot", "blobGasUsed", "excessBlobGas")
LATER += ("parentBeaconBlockRoot", "requestsHash")
ERAS = {26: 0, 27: 1, 39: 3, 42: 6, 45: 7}  # block number -> how many members of LATER it has


def recorded(path: str) -> Any:
    """Returns the result of a recorded answer."""
    text = (RECORDED / "tests" / Path(path)).read_text()
    line = next(line for line in text.splitlines() if line.startswith("<<"))
    return json.loads(line[2:])["result"]


@pytest.mark.parametrize(("number", "count"), ERAS.items())
def test_a_block_has_the_members_of_its_era(number: int, count: int) -> None:
    answer = View(NODE, BLOCKS[number]).block_json(full=False)
    assert [name in answer for name in LATER] == [i < count for i in range(len(LATER))]
    assert "totalDifficulty" not in answer


@pytest.mark.parametrize(
    ("path", "number", "full"),
    [
        ("eth_getBlockByNumber/get-block-london-fork.io", 27, False),
        ("eth_getBlockByNumber/get-block-cancun-fork.io", 42, False),
        ("eth_getBlockByNumber/get-block-prague-fork.io", 45, False),
        ("eth_getBlockByNumber/get-latest.io", 54, True),
        ("eth_getBlockByHash/get-block-by-hash.io", 1, True),
    ],
)
def test_blocks_equal_the_recorded_ones(path: str, number: int, full: bool) -> None:
    assert View(NODE, BLOCKS[number]).block_json(full=full) == recorded(path)


@pytest.mark.parametrize(
    ("path", "number", "index"),
    [
        ("eth_getTransactionByHash/get-legacy-tx.io", 3, 0),
        ("eth_getTransactionByHash/get-legacy-create.io", 1, 0),
        ("eth_getTransactionByHash/get-access-list.io", 24, 0),
        ("eth_getTransactionByHash/get-setcode-tx.io", 45, 1),
    ],
)
def test_transactions_equal_the_recorded_ones(path: str, number: int, index: int) -> None:
    assert View(NODE, BLOCKS[number]).transaction_json(index) == recorded(path)


def test_pooled_transactions_equal_the_recorded_ones() -> None:
    """The recorded pool contains the transaction of a recorded eth_sendRawTransaction request."""
    sent = (RECORDED / "tests/eth_sendRawTransaction/send-legacy-transaction.io").read_text()
    raw = json.loads(sent.split(">>")[1].split("\n")[0])["params"][0]
    transaction = Transaction.decode(bytes.fromhex(raw[2:]))
    content = recorded("txpool_content/get-content.io")["pending"]
    assert transaction_json(transaction) == content[checksum_address(transaction.sender)]["0"]


def test_a_blob_transaction_has_its_members() -> None:
    transaction = Transaction.build(
        sender=A,
        to=A,
        chain_id=1,
        max_fee_per_gas=5,
        max_fee_per_blob_gas=7,
        blob_versioned_hashes=[b"\x01" * 32],
    )
    answer = transaction_json(transaction)
    assert answer["type"] == "0x3"
    assert answer["maxFeePerBlobGas"] == "0x7"
    assert answer["blobVersionedHashes"] == ["0x" + "01" * 32]


def test_chain_id_and_parity_depend_on_the_kind() -> None:
    legacy = transaction_json(Transaction.build(sender=A, gas_price=1, to=A))
    assert not {"chainId", "yParity", "accessList", "maxFeePerGas"} & legacy.keys()
    listed = transaction_json(Transaction.build(sender=A, gas_price=1, to=A, access_list=[]))
    assert {"chainId", "yParity", "accessList"} <= listed.keys()
    assert "maxFeePerGas" not in listed


def receipt(**fields: Any) -> Receipt:
    defaults = {
        "tx_type": 0,
        "status": 1,
        "post_state": None,
        "cumulative_gas_used": 21_000,
        "logs": (),
        "bloom": bytes(256),
        "gas_used": 21_000,
        "effective_gas_price": 1,
    }
    return Receipt(**{**defaults, **fields})


def shown(entry: Receipt) -> dict[str, Any]:
    block = Block(header(1), (Transaction.build(sender=A, gas_price=1, to=A),))
    shown: dict[str, Any] = json.loads(View(NODE, block, _receipts=(entry,)).receipt_text(0))
    return shown


def test_a_receipt_has_a_status_or_a_root() -> None:
    assert shown(receipt())["status"] == "0x1"
    assert "root" not in shown(receipt())
    early = shown(receipt(status=None, post_state=b"\x11" * 32))
    assert early["root"] == "0x" + "11" * 32
    assert "status" not in early


def test_only_blob_receipts_have_blob_members() -> None:
    assert "blobGasUsed" not in shown(receipt())
    blob = shown(receipt(tx_type=3, blob_gas_used=131_072, blob_gas_price=1))
    assert (blob["blobGasUsed"], blob["blobGasPrice"]) == ("0x20000", "0x1")


def test_a_creation_names_its_contract() -> None:
    assert shown(receipt())["contractAddress"] is None
    assert shown(receipt(contract_address=A))["contractAddress"] == "0x" + "aa" * 20


@given(st.binary(min_size=20, max_size=20))
def test_checksums_agree_with_an_independent_library(address: bytes) -> None:
    assert checksum_address(address) == to_checksum_address(address)
