"""Tests that a chain continues from its dump, with state, blocks, receipts and senders."""

import gzip
import json
from pathlib import Path

import pytest

from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import StateUnavailableError
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.saved_state import packed_state

ALICE, BOB = b"\xa1" * 20, b"\xb0" * 20
FEES = {"chain_id": DEV_CHAIN_ID, "max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 1}
# Logs 32 bytes of memory under topic 1, sets slot 1 to 42, and deploys no code.
CREATION = bytes.fromhex("602a6000526001602060" + "00a1602a60015560006000f3")


def fresh() -> Node:
    return dev_node(accounts=2, mining=Mining.MANUAL)


@pytest.fixture(scope="module")
def used() -> Node:
    """Returns a chain of four blocks.

    It has a creation with a log, an impersonated sender, and an amended account.
    """
    node = fresh()
    assert node.development is not None
    key = node.accounts[0].private_key
    node.submit(Transaction.build(data=CREATION, gas_limit=200_000, **FEES).sign(key).raw)
    node.mine()
    node.development.amend({"0x" + ALICE.hex(): {"balance": hex(10**18), "code": "0x00"}})
    node.submit_impersonated(ALICE, {"to": BOB, "value": 5, "gas_limit": 21_000, **FEES})
    node.mine(2)
    node.development.amend({"0x" + BOB.hex(): {"balance": "0x7", "storage": {"0x1": "0x2"}}})
    return node


def test_a_chain_goes_on_from_its_dump(used: Node) -> None:
    node = fresh()
    node.load_state(used.dump_state())
    assert node.chain.head.hash == used.chain.head.hash
    layer = node.chain.layer_of(node.chain.head.hash)
    assert layer.state_root() == used.chain.layer_of(used.chain.head.hash).state_root()
    for number in range(4):
        old = used.chain.block_by_number(number)
        assert old is not None
        block = node.chain.block_by_number(number)
        assert block == old
        assert node.chain.receipts_of(block.hash) == used.chain.receipts_of(old.hash)
        for index, transaction in enumerate(old.transactions):
            assert node.chain.locate(transaction.hash) == (block, index)
            assert block.transactions[index].sender == transaction.sender
    (after,) = node.mine()
    assert after.header.parent_hash == used.chain.head.hash
    with pytest.raises(StateUnavailableError):
        node.chain.layer_of(node.chain.genesis.hash)


def test_accounts_that_the_dump_does_not_name_stay(used: Node) -> None:
    node = fresh()
    assert node.development is not None
    node.development.amend({"0x" + "0c" * 20: {"balance": "0x9"}})
    snapshot = node.development.snapshot()
    node.load_state(packed_state(used.dump_state()))
    layer = node.chain.layer_of(node.chain.head.hash)
    assert (layer.balance(b"\x0c" * 20), layer.balance(BOB), layer.storage(BOB, 1)) == (9, 7, 2)
    assert not node.development.revert(snapshot)


def test_a_state_without_blocks_begins_at_its_number() -> None:
    block = {"number": "0x10", "timestamp": "0x5", "coinbase": "0x" + "0d" * 20}
    block |= {"gas_limit": "0x1c9c380", "basefee": "0x7"}
    accounts = {"0x" + BOB.hex(): {"nonce": 3, "balance": "0x7", "code": "0x", "storage": {}}}
    node = fresh()
    node.load_state(json.dumps({"block": block, "accounts": accounts}).encode())
    head = node.chain.head.header
    assert (head.number, head.gas_limit, head.base_fee_per_gas) == (16, 30_000_000, 7)
    assert node.chain.layer_of(head.hash).nonce(BOB) == 3
    assert node.mine()[0].number == 17


def test_accounts_alone_change_the_head() -> None:
    node = fresh()
    node.load_state(json.dumps({"accounts": {"0x" + BOB.hex(): {"balance": "0x7"}}}).encode())
    assert node.chain.head.number == 0
    assert node.chain.layer_of(node.chain.head.hash).balance(BOB) == 7


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "not a state"),
        (b"[]", "accounts: expected an object"),
        (b'{"accounts": {"0x12": {}}}', "expected 20 bytes"),
        (b'{"accounts": {}, "blocks": [{}]}', "not a state as anvil dumps it"),
        (b"\x1f\x8b\x00", "not a state"),
        (gzip.compress(b"null", mtime=0), "accounts: expected an object"),
    ],
)
def test_what_is_no_state_changes_nothing(data: bytes, words: str) -> None:
    node = fresh()
    before = node.chain.head
    with pytest.raises(ValueError, match=words):
        node.load_state(data)
    assert node.chain.head is before


def test_a_dump_is_bounded_when_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastevm.node.saved_state.MAX_STATE_BYTES", 100)
    with pytest.raises(ValueError, match="more than 100 bytes"):
        fresh().load_state(gzip.compress(b" " * 1000))
    with pytest.raises(ValueError, match="more than 50 bytes"):
        fresh().load_state(gzip.compress(b" " * 80), 50)


def test_a_chain_in_a_data_directory_stays(tmp_path: Path, used: Node) -> None:
    node = dev_node(mining=Mining.MANUAL, directory=DataDirectory(tmp_path))
    with pytest.raises(ValueError, match="data directory"):
        node.load_state(used.dump_state())
    assert node.directory is not None
    node.directory.close()


def test_older_states_are_there_again(used: Node) -> None:
    node = fresh()
    node.load_state(used.dump_state(historical=True))
    for number in range(4):
        block = used.chain.block_by_number(number)
        assert block is not None
        found, wanted = node.chain.layer_of(block.hash), used.chain.layer_of(block.hash)
        assert found.state_root() == wanted.state_root()
    assert node.chain.oldest_state() == 0
    node.development.rewriting.rollback(2)
    assert node.chain.head.number == used.chain.head.number - 2
    (after,) = node.mine()
    assert after.header.parent_hash == node.chain.canonical_hash(after.number - 1)


def test_what_was_deleted_between_two_states_stays_deleted() -> None:
    node, name = fresh(), "0x" + BOB.hex()
    node.development.amend({name: {"balance": "0x7", "storage": {"0x1": "0x2", "0x3": "0x4"}}})
    node.mine()
    node.development.amend({name: {"storage": {"0x1": "0x0"}}})
    node.mine()
    node.development.amend({name: None})
    node.mine(2)
    again = fresh()
    again.load_state(node.dump_state(historical=True))
    layers = [again.chain.layer_of(again.chain.canonical_hash(number)) for number in range(1, 5)]
    assert [layer.storage(BOB, 1) for layer in layers] == [0, 0, 0, 0]
    assert [layer.storage(BOB, 3) for layer in layers] == [4, 0, 0, 0]
    assert [layer.balance(BOB) for layer in layers] == [7, 0, 0, 0]
