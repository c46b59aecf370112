"""Tests that changes to a development chain do not invalidate its pre-confirmations."""

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fastevm.chain.retention import MIN_STATES, ChainLimits
from fastevm.chain.storage import DataDirectory
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import FastevmError, StateUnavailableError
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.development import MAX_MINED, DevelopmentControls
from fastevm.node.production.block_clock import MAX_TIMESTAMP
from fastevm.node.snapshots import MAX_SNAPSHOTS
from tests.block_times import UNHURRIED_MS
from tests.max_wait import MAX_WAIT

BOB = b"\xb0" * 20
BOB_NAME = "0x" + BOB.hex()


@pytest.fixture
def node() -> Node:
    return dev_node(accounts=2, mining=Mining.MANUAL)


@pytest.fixture
def living() -> Iterator[Node]:
    made = dev_node(accounts=2, block_time_ms=UNHURRIED_MS, slice_interval_ms=50)
    made.producer.start()
    yield made
    made.producer.stop()


def control(node: Node) -> DevelopmentControls:
    return node.development.required()


def payment(node: Node, nonce: int, value: int = 5) -> bytes:
    made = Transaction.build(
        to=BOB, value=value, gas_limit=21_000, chain_id=DEV_CHAIN_ID, nonce=nonce,
        max_fee_per_gas=10**10, max_priority_fee_per_gas=1,
    )  # fmt: skip
    return made.sign(node.accounts[0].private_key).raw


def promised(node: Node, count: int) -> list[bytes]:
    """Submits payments and waits until they are pre-confirmed."""
    hashes = [node.submit(payment(node, nonce)) for nonce in range(count)]
    deadline = time.monotonic() + MAX_WAIT
    while len(node.pending().transactions) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return hashes


def timestamps(node: Node) -> list[int]:
    chain = node.chain
    numbers = range(1, chain.head.number + 1)
    return [chain.block_by_number(number).header.timestamp for number in numbers]


def test_blocks_are_made_on_demand_at_a_distance(node: Node) -> None:
    first = node.chain.head.header.timestamp
    control(node).mine(3, timestamp=first + 1000, interval=60)
    assert timestamps(node) == [first + 1000, first + 1060, first + 1120]
    control(node).mine()
    assert timestamps(node)[-1] in range(first + 1121, first + 1130)


def test_the_clock_is_turned_on_and_goes_on_from_there(node: Node) -> None:
    assert control(node).time.increase(3600) == 3600
    assert control(node).time.increase(400) == 4000
    control(node).mine(2)
    now = int(time.time()) + 4000
    assert all(abs(found - now) < 5 for found in timestamps(node))


def test_the_next_timestamp_is_exact_and_the_next_ones_follow(node: Node) -> None:
    wanted = node.chain.head.header.timestamp + 10_000
    control(node).time.set_next(wanted)
    control(node).mine(2)
    found = timestamps(node)
    assert found[0] == wanted
    assert wanted < found[1] < wanted + 5


def test_an_earlier_time_is_refused(node: Node) -> None:
    control(node).mine(timestamp=node.chain.head.header.timestamp + 100)
    newest = node.chain.head.header.timestamp
    for action in (control(node).time.set_next, lambda at: control(node).mine(timestamp=at)):
        with pytest.raises(ValueError, match=f"is not after the newest block's, {newest}"):
            action(newest)
    assert node.chain.head.number == 1


def test_too_many_blocks_at_once_are_refused(node: Node) -> None:
    with pytest.raises(ValueError, match=f"limit {MAX_MINED}"):
        control(node).mine(MAX_MINED + 1)


def test_accounts_are_changed_field_by_field_and_the_next_block_stands_on_that(node: Node) -> None:
    sender = "0x" + node.accounts[0].address.hex()
    control(node).amend({BOB_NAME: {"balance": "0x7", "code": "0x00", "storage": {"0x1": "0x2"}}})
    control(node).amend({BOB_NAME: {"balance": "0x8"}, sender: {"nonce": "0x5"}})
    layer = node.chain.layer_of(node.chain.head.hash)
    assert (layer.balance(BOB), layer.code(BOB), layer.storage(BOB, 1)) == (8, b"\0", 2)
    node.submit(payment(node, 5))
    (block,) = control(node).mine()
    assert [transaction.nonce for transaction in block.transactions] == [5]
    after = node.chain.layer_of(block.hash)
    assert (after.balance(BOB), after.storage(BOB, 1)) == (13, 2)
    assert block.header.state_root == after.state_root()
    with pytest.raises(ValueError, match="balance"):
        control(node).amend({BOB_NAME: {"balance": "much"}})


def test_a_snapshot_brings_back_head_pool_and_clock(node: Node) -> None:
    waiting = node.submit(payment(node, 0))
    before = control(node).snapshot()
    control(node).mine()
    control(node).time.increase(1000)
    later = node.submit(payment(node, 1))
    inner = control(node).snapshot()
    control(node).mine()
    assert control(node).revert(before)
    assert node.chain.head == node.chain.genesis
    assert node.pool.find(waiting) is not None
    assert node.pool.find(later) is None
    assert 0 <= node.producer.clock.now() - node.chain.head.header.timestamp < 100
    assert not control(node).revert(inner)
    assert not control(node).revert(before)
    assert [transaction.hash for transaction in control(node).mine()[0].transactions] == [waiting]


def test_going_back_takes_back_what_nobodys_transaction_changed(node: Node) -> None:
    sender = "0x" + node.accounts[0].address.hex()
    control(node).amend({sender: {"storage": {"0x2": "0x9"}}})
    before = node.chain.layer_of(node.chain.head.hash)
    number = control(node).snapshot()
    inner = control(node).snapshot()
    control(node).amend({BOB_NAME: {"balance": "0x7", "code": "0x00", "storage": {"0x1": "0x2"}}})
    control(node).amend({sender: {"balance": "0x1", "nonce": "0x5", "storage": {"0x2": "0x3"}}})
    assert control(node).revert(inner)
    control(node).amend({sender: {"storage": {"0x4": "0x1"}}})
    control(node).mine()
    assert control(node).revert(number)
    after = node.chain.layer_of(node.chain.head.hash)
    assert after.account(BOB) is None
    assert after.state_root() == before.state_root()
    node.submit(payment(node, 0))
    (block,) = control(node).mine()
    assert len(block.transactions) == 1


def test_going_back_needs_no_state_that_the_chain_keeps(tmp_path: Path) -> None:
    def begin() -> Node:
        limits = ChainLimits(state_gas=1_000, blocks=2)
        directory = DataDirectory(tmp_path)
        return dev_node(accounts=2, mining=Mining.MANUAL, directory=directory, limits=limits)

    node = begin()
    for count in range(2):
        node.submit(payment(node, count))
        control(node).mine()
    number, head = control(node).snapshot(), node.chain.head
    control(node).amend({BOB_NAME: {"nonce": "0x9"}})
    control(node).mine(MIN_STATES + 20)
    with pytest.raises(StateUnavailableError):
        node.chain.layer_of(head.hash)
    with pytest.raises(StateUnavailableError):
        node.chain.set_head(head.hash)
    assert node.chain.head.number == head.number + MIN_STATES + 20
    assert control(node).revert(number)
    for _ in range(3):
        assert node.chain.head.hash == head.hash
        layer = node.chain.layer_of(head.hash)
        assert (layer.balance(BOB), layer.nonce(BOB)) == (10, 0)
        node.directory.close()
        node = begin()
    control(node).mine(5)
    assert node.chain.layer_of(node.chain.head.hash).balance(BOB) == 10
    node.directory.close()


def test_a_return_weighs_the_blocks_and_transactions_that_it_takes_back(node: Node) -> None:
    number = control(node).snapshot()
    assert control(node).weight_since(number, 10) == 0
    control(node).mine(3)
    assert control(node).weight_since(number, 10) == 3
    assert control(node).weight_since(number, 2) == 2
    assert control(node).weight_since(number + 1, 10) == 0  # no snapshot has this number


def test_a_return_to_a_block_that_is_not_below_the_head_weighs_the_limit(node: Node) -> None:
    control(node).mine(2)
    number = control(node).snapshot()
    node.chain.set_head(node.chain.genesis.hash)
    assert control(node).weight_since(number, 10) == 10


def test_snapshots_are_bounded(node: Node) -> None:
    numbers = [control(node).snapshot() for _ in range(MAX_SNAPSHOTS + 1)]
    assert not control(node).revert(numbers[0])
    assert control(node).revert(numbers[1])


def test_what_was_reverted_stays_so_after_a_restart(tmp_path: Path) -> None:
    node = dev_node(accounts=2, mining=Mining.MANUAL, directory=DataDirectory(tmp_path))
    number = control(node).snapshot()
    node.submit(payment(node, 0))
    control(node).mine()
    control(node).revert(number)
    node.directory.close()
    again = dev_node(accounts=2, mining=Mining.MANUAL, directory=DataDirectory(tmp_path))
    assert again.chain.head == again.chain.genesis
    assert not again.pool
    again.directory.close()


def test_what_was_pre_confirmed_is_sealed_before_time_or_accounts_change(living: Node) -> None:
    hashes = promised(living, 2)
    control(living).time.increase(10**8)
    assert [transaction.hash for transaction in living.chain.head.transactions] == hashes
    pending = living.pending()
    assert pending.header.number == 2
    assert abs(pending.header.timestamp - time.time() - 10**8) < 70
    living.submit(payment(living, 2))
    control(living).amend({BOB_NAME: {"balance": "0x64"}})
    assert living.pending().layer.balance(BOB) in (0x64, 0x64 + 5)


def test_a_living_chain_goes_back_and_pre_confirms_from_there(living: Node) -> None:
    number = control(living).snapshot()
    promised(living, 2)
    control(living).mine()
    assert living.chain.head.number == 1
    assert control(living).revert(number)
    pending = living.pending()
    assert (pending.header.number, len(pending.transactions)) == (1, 0)
    assert pending.layer.balance(BOB) == 0
    promised(living, 1)


def test_a_dropped_transaction_is_gone(node: Node) -> None:
    tx_hash = node.submit(payment(node, 0))
    assert control(node).drop(tx_hash)
    assert not control(node).drop(tx_hash)
    assert not control(node).mine()[0].transactions


def test_a_node_that_makes_no_blocks_has_no_such_control() -> None:
    node = dev_node(accounts=1, mining=Mining.NEVER)
    assert not node.development.is_present
    with pytest.raises(FastevmError, match="makes no blocks"):
        node.development.required()


@pytest.mark.parametrize("seconds", [2**63, 2**64 - 1, 10**40])
def test_a_clock_beyond_the_limit_is_refused_and_blocks_are_built_on(
    living: Node, seconds: int
) -> None:
    with pytest.raises(ValueError, match="limit 4611686018427387904"):
        control(living).time.increase(seconds)
    with pytest.raises(ValueError, match="limit"):
        control(living).time.set_next(seconds)
    with pytest.raises(ValueError, match="limit"):
        control(living).mine(timestamp=seconds)
    with pytest.raises(ValueError, match="limit"):
        control(living).mine(2, interval=seconds)
    promised(living, 1)
    assert not living.building_fails
    assert not living.metrics().get("slice_failures_total")


def test_the_latest_clock_still_builds_blocks(living: Node) -> None:
    control(living).time.set_next(MAX_TIMESTAMP)
    promised(living, 1)
    control(living).mine(3)
    assert living.chain.head.header.timestamp >= MAX_TIMESTAMP
    assert not living.metrics().get("slice_failures_total")


def test_blocks_are_mined_on_after_the_latest_clock(node: Node) -> None:
    control(node).time.set_next(MAX_TIMESTAMP)
    for count in (1, 1, 2):
        control(node).mine(count)
    assert timestamps(node) == [MAX_TIMESTAMP + after for after in range(4)]
    with pytest.raises(ValueError, match="limit"):
        control(node).mine(2, interval=60)
    control(node).mine()


def test_mining_ends_when_nobody_waits_for_it(node: Node) -> None:
    made = control(node).mine(MAX_MINED, is_stopped=lambda: node.chain.head.number == 5)
    assert len(made) == 5
    assert len(control(node).mine(2)) == 2


def test_a_node_that_stops_ends_its_mining_first(tmp_path: Path) -> None:
    def begin() -> Node:
        return dev_node(accounts=1, mining=Mining.MANUAL, directory=DataDirectory(tmp_path))

    node = begin()
    with ThreadPoolExecutor(1) as pool:
        mining = pool.submit(control(node).mine, MAX_MINED)
        while node.chain.head.number < 10:
            time.sleep(0.001)
        asyncio.run(node.stop())
        made = mining.result(timeout=MAX_WAIT)
    assert 10 <= len(made) < MAX_MINED
    again = begin()
    assert again.chain.head.hash == made[-1].hash
    again.directory.close()


def test_a_genesis_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit"):
        dev_node(accounts=1, timestamp=2**64 - 1)


def test_amounts_at_their_limits_leave_the_chain_building(living: Node) -> None:
    highest = {"balance": hex(2**256 - 1), "nonce": hex(2**64 - 1)}
    control(living).amend({"0x" + bytes(20).hex(): highest, BOB_NAME: highest})
    promised(living, 2)
    control(living).mine()
    promised_later = living.submit(payment(living, 2))
    control(living).mine()
    assert living.chain.head.transactions[-1].hash == promised_later
    assert not living.metrics().get("slice_failures_total")
