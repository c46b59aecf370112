"""Tests blocks in slices: number, content and order of slices."""

import time
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise

import pytest

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Receipt
from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID, DEV_GAS_LIMIT
from fastevm.node.production.cadence import Cadence, aligned_anchor
from fastevm.rpc_types.feed import slice_of
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

BOB = b"\xb0" * 20
# JUMPDEST PUSH0 JUMP: runs until its gas is gone.
ENDLESS = bytes.fromhex("5b5f56")


class Watched:
    """A node that builds slices, and a list of all published slices."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.slices: list[PendingBlock] = []
        self.nonces: dict[int, int] = {}
        node.on_slice(lambda pending, first_new: self.slices.append(pending))

    def submit(self, who: int = 0, **fields) -> bytes:
        nonce = self.nonces.get(who, 0)
        self.nonces[who] = nonce + 1
        values = {"to": BOB, "value": 1, "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID}
        prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 10}
        made = Transaction.build(**{**values, **prices, "nonce": nonce, **fields})
        return self.node.submit(made.sign(self.node.accounts[who].private_key).raw)

    def shown(self) -> set[bytes]:
        """Returns the transactions of all slices so far."""
        return {
            transaction.hash
            for pending in list(self.slices)
            for transaction in pending.transactions
        }

    def blocks(self) -> list[list[PendingBlock]]:
        """Returns the slices of each block."""
        return [list(group) for _, group in groupby(self.slices, lambda item: item.payload_id)]

    def whole_blocks(self) -> list[list[PendingBlock]]:
        """Returns the slices of each block except the first, which began late, and the last."""
        return self.blocks()[1:-1]

    def wait(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + MAX_WAIT
        while not condition():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.005)

    def wait_for_block(self, number: int) -> Block:
        self.wait(lambda: self.node.chain.head.number >= number)
        block = self.node.chain.block_by_number(number)
        assert block is not None
        return block


def watched(**options) -> Iterator[Watched]:
    node = dev_node(accounts=4, **options)
    made = Watched(node)
    node.producer.start()
    yield made
    node.producer.stop()


@pytest.fixture
def live() -> Iterator[Watched]:
    yield from watched(block_time_ms=500, slice_interval_ms=50)


@pytest.fixture
def unhurried() -> Iterator[Watched]:
    """Provides a node with timed slices and a block that does not end during a test."""
    yield from watched(block_time_ms=UNHURRIED_MS, slice_interval_ms=50)


@pytest.fixture
def native() -> Iterator[Watched]:
    yield from watched(block_time_ms=200, slice_interval_ms=200)


@pytest.fixture
def manual() -> Watched:
    return Watched(dev_node(accounts=4, mining=Mining.MANUAL))


def filled(node: Node, seconds: float) -> float:
    """Fills a slice whose deadline is in ``seconds``. Returns the CPU time that this takes."""
    started = time.thread_time()
    node.producer.fill(DEV_GAS_LIMIT, time.monotonic() + seconds)
    return time.thread_time() - started


def step(watched: Watched, budget: int = DEV_GAS_LIMIT) -> PendingBlock:
    producer = watched.node.producer
    producer.fill(budget)
    return producer.close_slice()


def test_a_block_of_ten_intervals_has_eleven_slices(live: Watched) -> None:
    """On a busy computer, the node may skip a slice that is late."""

    def indexes() -> list[list[int]]:
        return [[item.slice_index for item in slices] for slices in live.whole_blocks()]

    live.wait(lambda: len(live.blocks()) >= 4 and list(range(11)) in indexes())
    for found in indexes():
        assert found == list(range(len(found)))
        assert len(found) <= 11


def test_a_block_that_begins_late_has_fewer_slices(live: Watched) -> None:
    live.wait(lambda: len(live.blocks()) >= 2)
    assert 2 <= len(live.blocks()[0]) <= 11


def test_slices_come_at_their_times_and_errors_do_not_add_up(live: Watched) -> None:
    """On a busy computer, some slices are late, but later slices are on time."""

    def are_in_time() -> bool:
        ends = [slices[-1].published for slices in live.whole_blocks()]
        spans = (
            (ends[last] - ends[first]) / (last - first)
            for first in range(len(ends))
            for last in range(first + 4, len(ends))
        )
        return any(abs(span - 0.5) < 0.1 for span in spans)

    live.wait(are_in_time)
    assert live.node.metrics_registry.lateness_ms.count > 0


def test_sealed_blocks_are_what_was_published(live: Watched) -> None:
    for round_number in range(6):
        for who in range(3):
            live.submit(who, value=round_number)
        time.sleep(0.1)
    live.wait(lambda: len(live.node.pool) == 0 and live.node.pool.confirmed_count == 0)
    last = live.node.chain.head.number
    for slices in live.blocks():
        if slices[0].header.number > last:
            continue
        block = live.node.chain.block_by_number(slices[0].header.number)
        assert block is not None
        raws = [raw for item in slices for raw in slice_of(item).transactions]
        assert [transaction.raw for transaction in block.transactions] == raws
        header = slices[-1].header
        assert header.receipts_root == block.header.receipts_root
        assert header.transactions_root == block.header.transactions_root
        assert header.gas_used == block.header.gas_used
        assert header.blob_gas_used == block.header.blob_gas_used
        assert header.logs_bloom == block.header.logs_bloom
        for before, after in pairwise(slices):
            assert after.transactions[: len(before.transactions)] == before.transactions
            assert after.first_new == len(before.transactions)


def test_native_blocks_of_one_slice_share_their_seconds(native: Watched) -> None:
    native.submit()
    native.wait_for_block(8)
    chain = native.node.chain
    times = [chain.block_by_number(number).header.timestamp for number in range(1, 9)]
    assert times == sorted(times)
    assert len(set(times)) < len(times)
    assert abs(times[-1] - time.time()) < 3
    other = type(chain)(chain.config, chain.genesis, chain.layer_of(chain.genesis.hash))
    for number in range(1, 9):
        other.add(chain.block_by_number(number).rlp())


def test_a_large_gas_limit_waits_until_the_block_has_room(manual: Watched) -> None:
    manual.submit(gas_limit=16_000_000)
    manual.node.producer.begin(0)
    counts = []
    for index in range(1, 11):
        counts.append(len(step(manual, DEV_GAS_LIMIT * index // 10).transactions))
    assert counts == [0, 0, *[1] * 8]


def test_unused_gas_of_a_slice_carries_over(manual: Watched) -> None:
    manual.node.producer.begin(0)
    step(manual, 6_000_000)
    for who in range(3):
        manual.submit(who, gas_limit=10_000_000)
    pending = step(manual, 12_000_000)
    assert len(pending.transactions) == 3


def test_a_slice_is_ordered_by_tip_and_nonces_of_a_sender_stay_in_order(manual: Watched) -> None:
    manual.node.producer.begin(0)
    for who, tip in ((0, 5), (0, 90), (1, 50), (2, 70)):
        manual.submit(who, max_priority_fee_per_gas=tip)
    pending = step(manual)
    tips = [transaction.max_priority_fee_per_gas for transaction in pending.transactions]
    assert tips == [70, 50, 5, 90]


def test_who_does_not_fit_blocks_its_later_nonces_in_this_slice_only(manual: Watched) -> None:
    manual.node.producer.begin(0)
    manual.submit(0, gas_limit=10_000_000, max_priority_fee_per_gas=50)
    manual.submit(0, max_priority_fee_per_gas=90)
    manual.submit(1, max_priority_fee_per_gas=10)
    senders = [transaction.sender for transaction in step(manual, 6_000_000).transactions]
    assert senders == [manual.node.accounts[1].address]
    assert len(step(manual, 12_000_000).transactions) == 3


def test_reverting_transactions_are_included(manual: Watched) -> None:
    manual.node.producer.begin(0)
    manual.submit(to=None, value=0, data=b"\x5f\x5f\xfd", gas_limit=100_000)
    assert [receipt.status for receipt in step(manual).receipts] == [0]


def test_a_transaction_that_runs_into_the_deadline_is_stopped_and_waits(manual: Watched) -> None:
    node = manual.node
    manual.submit(0, max_priority_fee_per_gas=50)
    manual.submit(1, to=None, value=0, data=ENDLESS, gas_limit=16_000_000)
    node.producer.begin(0)
    spent = filled(node, 0.002)
    pending = node.producer.close_slice()
    assert spent < 0.1
    assert len(pending.transactions) <= 2
    if len(pending.transactions) == 1:
        assert node.metrics_registry.get("transactions_postponed_total") == 1
        assert len(step(manual).transactions) == 2


def test_a_transaction_that_gets_no_time_stays(manual: Watched) -> None:
    node = manual.node
    manual.submit()
    node.producer.begin(0)
    add, taken = node.producer.open_block.add, []

    def too_late(transaction: Transaction) -> Receipt:
        """Raises as if the deadline had passed before the execution, as on a busy computer."""
        taken.append(transaction)
        raise InvalidTransaction("cancelled", "the run was cancelled")

    node.producer.open_block.add = too_late
    for _ in range(20):
        assert node.producer.fill(DEV_GAS_LIMIT, time.monotonic() + 5.0) == 0
        node.producer.close_slice()
    node.producer.open_block.add = add
    assert len(taken) == 20
    assert len(step(manual).transactions) == 1


def test_mining_on_demand_seals_what_waits(manual: Watched) -> None:
    tx_hash = manual.submit()
    assert manual.node.chain.head.number == 0
    assert manual.node.pending() is None
    blocks = manual.node.mine(3)
    assert [len(block.transactions) for block in blocks] == [1, 0, 0]
    assert manual.node.chain.locate(tx_hash) == (blocks[0], 0)
    assert manual.node.chain.head == blocks[-1]


def test_instant_mining_makes_a_block_of_every_transaction() -> None:
    made = Watched(dev_node(accounts=1, mining=Mining.INSTANT))
    for number in range(1, 4):
        tx_hash = made.submit()
        block, index = made.node.chain.locate(tx_hash)
        assert (block.number, index) == (number, 0)


def test_mining_on_demand_keeps_what_is_pre_confirmed(unhurried: Watched) -> None:
    for number in (1, 2):
        tx_hash = unhurried.submit()
        unhurried.wait(lambda wanted=tx_hash: wanted in unhurried.shown())
        assert unhurried.node.chain.head.number == number - 1
        block = unhurried.node.mine()[0]
        assert [transaction.hash for transaction in block.transactions] == [tx_hash]
        assert unhurried.node.chain.locate(tx_hash) == (block, 0)


def test_the_clock_goes_on_after_mining_on_demand(live: Watched) -> None:
    block = live.node.mine()[0]
    live.wait_for_block(block.number + 2)


def test_a_node_without_production_mines_nothing() -> None:
    with pytest.raises(FastevmError, match="makes no blocks"):
        dev_node(accounts=1, mining=Mining.NEVER).mine()


def test_a_longer_branch_takes_over_and_transactions_come_back(live: Watched) -> None:
    kept = live.submit(0)
    live.wait(lambda: live.node.chain.locate(kept) is not None)
    chain = live.node.chain
    other = dev_node(accounts=4, mining=Mining.MANUAL, timestamp=chain.genesis.header.timestamp)
    branch = other.mine(chain.head.number + 5)
    for block in branch:
        live.node.add_block(block.rlp())
    assert chain.is_canonical(branch[-1].hash)
    live.wait(lambda: chain.locate(kept) is not None)
    block, _ = chain.locate(kept)
    assert block.number > branch[-1].number
    assert live.node.metrics_registry.get("reorganisations_total") == 1


def test_a_restarted_block_has_another_payload_and_loses_nothing(live: Watched) -> None:
    live.wait_for_block(1)
    tx_hash = live.submit()
    live.wait(lambda: len(live.slices[-1].transactions) == 1)
    live.node.producer.faults.restart_block = True
    live.wait(lambda: live.node.chain.locate(tx_hash) is not None)
    by_number: dict[int, set[bytes]] = {}
    for item in live.slices:
        by_number.setdefault(item.header.number, set()).add(item.payload_id)
    assert max(map(len, by_number.values())) == 2


def test_a_block_sealed_differently_brings_back_what_it_left_out(live: Watched) -> None:
    live.wait_for_block(1)
    live.node.producer.faults.seal_without_last = True
    tx_hash = live.submit()
    live.wait(lambda: live.node.chain.locate(tx_hash) is not None)
    block, _ = live.node.chain.locate(tx_hash)
    before = live.node.chain.block_by_number(block.number - 1)
    assert before.transactions == ()
    assert not live.node.producer.faults.seal_without_last


@pytest.mark.parametrize(("block", "interval"), [(2000, 200), (200, 200), (1000, 300), (50, 20)])
def test_ticks_end_with_their_block(block: int, interval: int) -> None:
    cadence = Cadence(block, interval, 100.0)
    assert cadence.tick(cadence.slices - 1).due == pytest.approx(100 + block / 1000)
    assert cadence.tick(cadence.slices).index == 1
    dues = [cadence.tick(number).due for number in range(3 * cadence.slices)]
    assert dues == sorted(dues)
    assert dues[-1] == pytest.approx(100 + 3 * block / 1000)


def test_ticks_that_have_passed_are_skipped_and_counted() -> None:
    cadence = Cadence(2000, 200, 0.0)
    assert cadence.after(0, now=0.5) == (cadence.tick(1), 0)
    tick, skipped = cadence.after(0, now=3.05)
    assert tick.due >= 3.05 - 0.2
    assert skipped == tick.number - 1


def test_blocks_end_on_multiples_of_their_time() -> None:
    anchor = aligned_anchor(2000, wall=1_000_001.5, monotonic=50.0)
    assert anchor == pytest.approx(48.5)


def test_errors_are_counted_logged_once_a_second_and_building_recovers(
    live: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = live.node.producer
    fill = builder.fill

    def broken(*arguments: object, **options: object) -> int:
        raise RuntimeError("out of order")

    monkeypatch.setattr(builder, "fill", broken)
    deadline = time.monotonic() + MAX_WAIT
    while live.node.metrics().get("slice_failures_total", 0) < 6:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert live.node.building_fails
    lines = [record for record in caplog.records if "out of order" in record.getMessage()]
    seconds = lines[-1].created - lines[0].created
    assert 1 <= len(lines) <= seconds + 1.1
    monkeypatch.setattr(builder, "fill", fill)
    while live.node.building_fails:
        assert time.monotonic() < deadline
        time.sleep(0.01)
