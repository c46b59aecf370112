"""Tests that feed slices become the pending block, and that contradictory slices withdraw it."""

import pytest

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block
from fastevm.core.primitives.replace import replace
from fastevm.node.from_genesis import dev_node
from fastevm.node.node import Mining

from .feeding import BOB, GENESIS_TIME, LOGGER_INIT, Sink, Source

# Init code of a contract that stores BLOCKHASH(NUMBER - 1) in slot 0.
PARENT_HASH_KEEPER = bytes.fromhex("6660014303405f55" + "5f5260076019f3")


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def sink() -> Sink:
    return Sink()


def test_a_slice_is_visible_when_it_arrives(source: Source, sink: Sink) -> None:
    sink.receive(source.begin())
    raw = source.payment()
    sink.receive(source.slice(raw))
    pending, sender = sink.pending, source.node.accounts[0].address
    assert pending is not None
    assert pending.layer.nonce(sender) == 1
    assert pending.layer.balance(BOB) == 5
    assert [transaction.hash for transaction in pending.transactions] == [
        Transaction.decode(raw).hash
    ]
    assert pending.receipts[0].status == 1
    assert pending.header == source.producer.open_block.close_slice().header


def test_a_snapshot_never_changes(source: Source, sink: Sink) -> None:
    sink.receive(source.begin(), source.slice(source.payment()))
    held = sink.pending
    sink.receive(source.slice(source.payment()))
    assert held is not None
    assert held.layer.balance(BOB) == 5
    assert len(held.transactions) == len(held.receipts) == 1
    assert sink.pending.layer.balance(BOB) == 10


def test_listeners_get_each_slice_once_and_where_it_begins(source: Source, sink: Sink) -> None:
    messages, _ = source.block((source.payment(),), (), (source.payment(), source.payment()))
    sink.receive(*messages, messages[-1])
    assert sink.reported == [(1, 0, 0), (1, 1, 0), (1, 2, 1), (1, 3, 1)]


def test_log_positions_go_on_over_the_slices_of_a_block(source: Source, sink: Sink) -> None:
    sink.receive(source.begin())
    create = source.payment(to=None, value=0, data=LOGGER_INIT, gas_limit=200_000)
    sink.receive(source.slice(create))
    logger = sink.pending.receipts[0].contract_address
    for _ in range(2):
        sink.receive(source.slice(source.payment(to=logger, value=0)))
    receipts = sink.pending.receipts
    assert [len(receipt.logs) for receipt in receipts] == [0, 1, 1]
    gas = [receipt.cumulative_gas_used for receipt in receipts]
    assert gas == sorted(gas)
    assert gas[-1] == sink.pending.header.gas_used


def test_a_gap_leaves_nothing_pending_until_a_block_begins(source: Source, sink: Sink) -> None:
    messages, block = source.block((source.payment(),), (source.payment(),), ())
    sink.receive(messages[0], messages[1], replace(messages[3], previous_id=None))
    assert sink.pending is None
    assert sink.count('feed_sequence_total{verdict="gap"}') == 1
    sink.receive(messages[2])
    assert sink.pending is None
    sink.import_block(block)
    sink.receive(source.begin())
    assert sink.position() == (2, 0)


def test_a_duplicate_changes_nothing(source: Source, sink: Sink) -> None:
    messages, _ = source.block((source.payment(),))
    sink.receive(*messages)
    before = sink.pending
    sink.receive(messages[-1])
    assert sink.pending is before
    assert sink.count('feed_sequence_total{verdict="duplicate"}') == 1


def test_a_message_that_waits_for_its_parent_is_a_duplicate_too(source: Source, sink: Sink) -> None:
    source.block()
    early = source.begin()
    sink.receive(early, early, source.slice(), early)
    assert sink.count('feed_sequence_total{verdict="duplicate"}') == 1
    assert sink.position() is None


def test_a_wrong_predecessor_voids_what_is_pending(source: Source, sink: Sink) -> None:
    messages, _ = source.block((source.payment(),))
    sink.receive(messages[0], replace(messages[1], previous_id="0-7"))
    assert sink.pending is None


def test_a_block_that_begins_again_replaces_itself(source: Source, sink: Sink) -> None:
    first = source.payment()
    sink.receive(source.begin(), source.slice(first))
    source.producer.abandon()
    sink.receive(source.begin())
    assert sink.position() == (1, 0)
    assert sink.pending.transactions == ()
    sink.receive(source.slice())
    assert [transaction.raw for transaction in sink.pending.transactions] == [first]


@pytest.mark.parametrize(
    "change", [{"gas_used": 1}, {"receipts_root": b"\x01" * 32}, {"transactions": (b"\x02\xc0",)}]
)
def test_another_result_than_announced_voids_what_is_pending(
    source: Source, sink: Sink, change: dict
) -> None:
    messages, _ = source.block((source.payment(),))
    sink.receive(messages[0], replace(messages[1], **change))
    assert sink.pending is None
    assert sink.count("feed_divergence_total") == 1


def test_an_early_block_waits_for_its_parent(source: Source, sink: Sink) -> None:
    _, block = source.block((source.payment(),))
    messages, _ = source.block((source.payment(),), ())
    sink.receive(*messages)
    assert sink.pending is None
    sink.import_block(block)
    assert sink.position() == (2, 2)
    assert sink.pending.layer.balance(BOB) == 10


def test_a_block_too_far_ahead_is_not_kept(source: Source, sink: Sink) -> None:
    blocks = [source.block()[1] for _ in range(7)]
    sink.receive(source.begin())
    for block in blocks:
        sink.import_block(block)
    assert sink.pending is None


def test_the_next_block_begins_on_the_pending_one(source: Source, sink: Sink) -> None:
    item, first = source.block((source.payment(),))
    two, second = source.block((source.payment(),))
    sink.receive(*item, *two)
    assert sink.position() == (2, 1)
    assert [held.header.number for held in sink.pending.chain()] == [1, 2]
    assert sink.pending.layer.balance(BOB) == 10
    sink.import_block(first)
    assert sink.position() == (2, 1)
    assert [held.header.number for held in sink.pending.chain()] == [2]
    assert sink.count("reconcile_mismatch_total") == 0
    sink.import_block(second)
    assert sink.pending is None
    assert sink.count("reconcile_catch_up_total") == 1


def test_moving_to_a_new_base_tells_nobody(source: Source, sink: Sink) -> None:
    item, first = source.block((source.payment(),))
    two, _ = source.block((source.payment(),))
    sink.receive(*item, *two)
    reported = list(sink.reported)
    sink.import_block(first)
    assert sink.reported == reported


def test_the_parent_hash_of_a_pending_block_is_the_one_that_the_feed_names(
    source: Source, sink: Sink
) -> None:
    create = source.payment(to=None, value=0, data=PARENT_HASH_KEEPER, gas_limit=200_000)
    item, first = source.block((create,))
    keeper = source.node.chain.receipts_of(first.hash)[0].contract_address
    two, _ = source.block((source.payment(to=keeper, value=0),))
    sink.receive(*item, *two)
    stored = sink.pending.layer.storage(keeper, 0)
    assert stored.to_bytes(32, "big") == two[0].base.parent_hash == first.hash


def test_a_canonical_block_in_another_order_is_a_mismatch(source: Source, sink: Sink) -> None:
    raws = (source.payment(0), source.payment(1))
    messages, _ = source.block((raws[0],), (raws[1],))
    sink.receive(*messages)
    sink.import_block(other_block(raws[::-1]))
    assert sink.count("reconcile_mismatch_total") == 1
    assert sink.pending is None
    assert sink.node.chain.head.number == 1


def test_pending_on_a_block_that_lost_goes(source: Source, sink: Sink) -> None:
    raws = (source.payment(0), source.payment(1))
    item, _ = source.block((raws[0],), (raws[1],))
    sink.receive(*item, source.begin())
    sink.import_block(other_block(raws[::-1]))
    assert sink.pending is None


def other_block(raws: tuple[bytes, ...]) -> Block:
    """Builds a different block with these transactions, each in a separate slice."""
    other = Source()
    return other.block(*((raw,) for raw in raws))[1]


def test_transactions_of_the_feed_leave_the_pool(source: Source, sink: Sink) -> None:
    raw = source.payment()
    sink.node.submit(raw)
    assert len(sink.node.pool) == 1
    sink.receive(source.begin(), source.slice(raw))
    assert len(sink.node.pool) == 0
    sink.follower.withdraw("test")
    assert sink.pending is None


def test_the_slot_is_the_one_that_the_feed_tells() -> None:
    chain = {"accounts": 3, "timestamp": GENESIS_TIME, "hardfork": "amsterdam"}
    source = Source(hardfork="amsterdam")
    first = source.begin()
    for reported, slot in ((9, 9), (None, 1)):
        sink = Sink(dev_node(**chain, mining=Mining.NEVER))
        sink.receive(replace(first, base=replace(first.base, slot_number=reported)))
        assert sink.pending.header.slot_number == slot
