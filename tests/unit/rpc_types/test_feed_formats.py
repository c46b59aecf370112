"""Tests the feed formats: the members that real messages have, roots, and reading by a follower."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fastevm.chain.pending_block import PendingBlock
from fastevm.chain.storage.preconfirmed import PreconfirmedBlock
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.op_stack.predeploys import L2_TO_L1_MESSAGE_PASSER
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_HASH
from fastevm.core.primitives.replace import replace
from fastevm.node import Mining, dev_node
from fastevm.node.following.feed_checks import announced_header, draft_of
from fastevm.node.following.feed_follower import FeedFollower
from fastevm.node.production.seal_preconfirmed import seal_preconfirmed
from fastevm.rpc_types.feed import FeedSlice, decode
from fastevm.rpc_types.feed_formats import FeedFormat, feed_text
from fastevm.rpc_types.feed_reader import FeedForm, FeedReader
from tests.op_chain import BOB, START, deposit, payment
from tests.op_stack_data import OP_STACK

REAL = json.loads((OP_STACK / "flashblocks-real.json").read_text())["unichain-sepolia-35535698"]
ZEROS = "0x" + "00" * 32


@pytest.fixture
def slices() -> Iterator[list[PendingBlock]]:
    """Yields two slices of a block: attributes and a deposit, then a payment."""
    node = dev_node(op_fork="karst", mining=Mining.MANUAL, timestamp=START)
    payment(node)
    node.deposit(deposit(value=5))
    first = node.producer.begin(START + 2)
    node.producer.fill(first.header.gas_limit)
    yield [first, node.producer.close_slice()]


def reported(pending: PendingBlock, form: FeedFormat) -> dict[str, Any]:
    return json.loads(feed_text(pending, form))


def test_flashblocks_have_the_members_of_real_ones(slices: list[PendingBlock]) -> None:
    for index in (0, 1):
        found, real = reported(slices[index], FeedFormat.FLASHBLOCKS), REAL[index]
        for name in ("diff", "metadata"):
            assert found[name].keys() - {"blob_gas_used"} == real[name].keys()
        # A real message without base has null in its place, or no such member.
        expected = {name for name, value in real.items() if value is not None}
        assert found.keys() == expected
    assert reported(slices[0], FeedFormat.FLASHBLOCKS)["base"].keys() == REAL[0]["base"].keys()


def test_the_hash_of_a_flashblock_is_that_of_the_header_it_tells(
    slices: list[PendingBlock],
) -> None:
    first, second = (decode(feed_text(item, FeedFormat.FLASHBLOCKS)) for item in slices)
    node = dev_node(op_fork="karst", mining=Mining.MANUAL, timestamp=START)
    genesis = node.chain.genesis
    schedule = node.chain.schedule_for_child(genesis, START + 2)
    draft = draft_of(first.base, genesis.header, schedule)
    transactions: list[bytes] = []
    for message in (first, second):
        transactions += message.transactions
        header = announced_header(draft, ordered_root(transactions), message)
        assert header.hash == message.block_hash
    assert second.block_hash == sealed_hash(transactions, slices[1])
    layer = node.chain.layer_of(genesis.hash)
    assert first.withdrawals_root == layer.proof(L2_TO_L1_MESSAGE_PASSER, []).storage_root


def sealed_hash(raws: list[bytes], pending: PendingBlock) -> bytes:
    """Returns the hash of the block with these transactions, built by a separate node."""
    node = dev_node(op_fork="karst", mining=Mining.NEVER, timestamp=START)
    draft = replace(pending.header, gas_used=0, blob_gas_used=0)
    transactions = [Transaction.decode(raw) for raw in raws]
    preconfirmed = PreconfirmedBlock(pending.payload_id, draft, raws, pending.header.receipts_root)
    sealed = seal_preconfirmed(node.chain, preconfirmed)
    assert sealed is not None
    assert [transaction.hash for transaction in sealed[0].transactions] == [
        transaction.hash for transaction in transactions
    ]
    return sealed[0].hash


def test_the_metadata_of_flashblocks_has_receipts_and_balances(
    slices: list[PendingBlock],
) -> None:
    metadata = reported(slices[1], FeedFormat.FLASHBLOCKS)["metadata"]
    paid = slices[1].transactions[-1]
    assert list(metadata["receipts"]) == ["0x" + paid.hash.hex()]
    receipt = metadata["receipts"]["0x" + paid.hash.hex()]["Eip1559"]
    gas = hex(slices[1].header.gas_used)
    assert receipt == {"status": "0x1", "cumulativeGasUsed": gas, "logs": []}
    assert metadata["new_account_balances"]["0x" + BOB.hex()] == "0x6"
    deposits = reported(slices[0], FeedFormat.FLASHBLOCKS)["metadata"]["receipts"].values()
    assert [item["Deposit"]["depositReceiptVersion"] for item in deposits] == ["0x1", "0x1"]


def test_subblocks_tell_no_root_of_the_state(slices: list[PendingBlock]) -> None:
    for pending in slices:
        found = reported(pending, FeedFormat.SUBBLOCKS)
        diff = found["diff"]
        assert {diff[name] for name in ("state_root", "block_hash", "withdrawals_root")} == {ZEROS}
        assert diff["withdrawals"] == []
        assert diff["receipts_root"] == "0x" + pending.header.receipts_root.hex()
        assert int(diff["gas_used"], 16) == pending.header.gas_used
        assert found["metadata"] == {"block_number": 1, "access_list": None}


@pytest.mark.parametrize(
    ("form", "seen"),
    [
        (FeedFormat.FASTEVM, FeedForm.FLASHBLOCKS),
        (FeedFormat.FLASHBLOCKS, FeedForm.FLASHBLOCKS),
        (FeedFormat.SUBBLOCKS, FeedForm.SUBBLOCKS),
    ],
)
def test_a_follower_understands_every_form(
    slices: list[PendingBlock], form: FeedFormat, seen: FeedForm
) -> None:
    node = dev_node(op_fork="karst", mining=Mining.NEVER, timestamp=START)
    lock, metrics = node.producer.lock, node.metrics_registry
    follower = FeedFollower(node.chain, node.followed, lock=lock, metrics=metrics)
    reader = FeedReader()
    for pending in slices:
        message = reader.read(feed_text(pending, form))
        assert isinstance(message, FeedSlice)
        follower.receive(message)
    assert reader.form is seen
    newest = node.pending()
    assert newest is not None
    assert newest.header.receipts_root == slices[1].header.receipts_root
    assert newest.header.state_root == ZERO_HASH
