"""Tests unsigned transactions: executed, stored, and rejected from other senders."""

from pathlib import Path

import pytest

from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.transaction.unsigned_sender import (
    impersonated,
    is_impersonated,
    with_named_sender,
)
from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.impersonated_accounts import MAX_IMPERSONATED, Impersonation

ALICE, BOB, ZERO = b"\xa1" * 20, b"\xb0" * 20, bytes(20)
LEGACY = {"gas_price": 10**10, "gas_limit": 21_000, "to": BOB, "value": 5}
FEES = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 1}
TYPED = {"chain_id": DEV_CHAIN_ID, "gas_limit": 21_000, "to": BOB, "value": 5, **FEES}
BOTH = pytest.mark.parametrize("fields", [LEGACY, TYPED], ids=["legacy", "typed"])


def funded(node: Node, **members: str) -> Node:
    assert node.development is not None
    for address in (ALICE, ZERO):
        node.development.amend({"0x" + address.hex(): {"balance": hex(10**18), **members}})
    return node


@pytest.fixture
def node() -> Node:
    return funded(dev_node(accounts=0, mining=Mining.MANUAL))


@BOTH
@pytest.mark.parametrize("sender", [ALICE, ZERO])
def test_the_signature_names_the_sender_and_is_none(fields: dict, sender: bytes) -> None:
    made = impersonated(sender, fields, chain_id=DEV_CHAIN_ID)
    assert (made.sender, made.s, made.chain_id) == (sender, 0, DEV_CHAIN_ID)
    read = Transaction.decode(made.raw)
    assert (read.sender, read.signature_fault) == (None, "invalid transaction v, r, s values")
    assert is_impersonated(read)
    assert with_named_sender(read).sender == sender
    other = impersonated(BOB, fields, chain_id=DEV_CHAIN_ID)
    assert other.hash != made.hash


def test_a_signed_transaction_is_left_as_it_is() -> None:
    signed = Transaction.build(**TYPED).sign(b"\x01" * 32)
    assert not is_impersonated(signed)
    assert with_named_sender(signed) is signed
    assert not is_impersonated(Transaction.build(**TYPED))


@BOTH
@pytest.mark.parametrize("sender", [ALICE, ZERO])
def test_it_is_mined_with_its_sender(node: Node, fields: dict, sender: bytes) -> None:
    tx_hash = node.submit_impersonated(sender, fields)
    (block,) = node.mine()
    assert [transaction.hash for transaction in block.transactions] == [tx_hash]
    layer = node.chain.layer_of(block.hash)
    assert (layer.nonce(sender), layer.balance(BOB)) == (1, 5)


def test_a_contract_may_send_several(node: Node) -> None:
    funded(node, code="0x00")
    hashes = [node.submit_impersonated(ALICE, {**TYPED, "nonce": nonce}) for nonce in (0, 1)]
    (block,) = node.mine()
    assert [transaction.hash for transaction in block.transactions] == hashes


def test_its_bytes_are_refused_when_somebody_submits_them(node: Node) -> None:
    raw = impersonated(ALICE, TYPED, chain_id=DEV_CHAIN_ID).raw
    with pytest.raises(InvalidTransaction, match="invalid transaction v, r, s values"):
        node.submit(raw)


def test_a_node_that_makes_no_blocks_takes_none() -> None:
    elsewhere = dev_node(accounts=0, mining=Mining.NEVER)
    with pytest.raises(FastevmError, match="makes no blocks"):
        elsewhere.submit_impersonated(ALICE, TYPED)


def test_what_was_mined_and_what_waits_comes_back(tmp_path: Path) -> None:
    node = funded(dev_node(accounts=0, mining=Mining.MANUAL, directory=DataDirectory(tmp_path)))
    mined = node.submit_impersonated(ALICE, LEGACY)
    (block,) = node.mine()
    waits = node.submit_impersonated(ALICE, {**TYPED, "nonce": 1})
    assert node.directory is not None
    node.directory.close()
    again = dev_node(accounts=0, mining=Mining.MANUAL, directory=DataDirectory(tmp_path))
    assert again.chain.head.hash == block.hash
    found, index = again.chain.locate(mined) or (block, -1)
    assert found.transactions[index].sender == ALICE
    waiting = again.pool.find(waits)
    assert waiting is not None
    assert waiting.sender == ALICE
    again.mine()
    assert again.chain.layer_of(again.chain.head.hash).balance(BOB) == 10
    assert again.directory is not None
    again.directory.close()


def test_accounts_are_named_one_by_one_or_all() -> None:
    found = Impersonation()
    assert not found.covers(ALICE)
    found.start(ALICE)
    found.start(ALICE)
    assert (found.accounts, found.covers(ALICE), found.covers(BOB)) == ((ALICE,), True, False)
    assert found.stop(ALICE)
    assert not found.stop(ALICE)
    found.everyone = True
    assert found.covers(ALICE)


def test_the_number_of_named_accounts_is_bounded() -> None:
    found = Impersonation()
    for number in range(MAX_IMPERSONATED):
        found.start(number.to_bytes(20, "big"))
    found.start(bytes(20))
    with pytest.raises(ValueError, match="which is the limit"):
        found.start(ALICE)
