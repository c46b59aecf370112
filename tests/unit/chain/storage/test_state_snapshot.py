"""Tests that a long chain is restored from a snapshot, or executed again if there is none."""

import time
from pathlib import Path
from typing import Any

import pytest

from fastevm.chain.chain import Chain
from fastevm.chain.storage import DataDirectory, block_journal, state_snapshot
from fastevm.chain.storage.block_record import block_of
from fastevm.chain.storage.state_snapshot import DEPTH, Snapshotter
from fastevm.core.execution.types import Block
from fastevm.errors import StateUnavailableError
from fastevm.node import Mining, Node, dev_node
from tests.max_wait import MAX_WAIT

from .test_data_directory import BOB, Home, payment, picture


@pytest.fixture
def home(tmp_path: Path) -> Any:
    home = Home(tmp_path / "data")
    yield home
    home.close()


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects the numbers of the blocks that ``Chain.add`` executes."""
    numbers: list[int] = []
    add = Chain.add

    def counted(chain: Chain, block: Any, **options: Any) -> Any:
        numbers.append(block.number)
        return add(chain, block, **options)

    monkeypatch.setattr(Chain, "add", counted)
    return numbers


def snapshotter(node: Node) -> Snapshotter:
    found = node.directory.snapshotter
    assert found is not None
    return found


def grown(home: Home, count: int = DEPTH + 10) -> Node:
    """Returns a node with ``count`` blocks. The first 8 blocks have one payment each."""
    node = home.open()
    for nonce in range(8):
        node.submit(payment(node, nonce))
        node.mine()
    node.mine(count - 8)
    return node


def answers(node: Node, numbers: range) -> list[Any]:
    """Returns blocks, receipts and positions of transactions. None of these needs state."""
    chain, found = node.chain, []
    for number in numbers:
        block = chain.block_by_number(number)
        places = [chain.locate(transaction.hash) for transaction in block.transactions]
        found.append((block, chain.receipts_of(block.hash), places))
        assert [transaction.sender for transaction in block.transactions] == [
            node.accounts[0].address for _ in block.transactions
        ]
    return found


def test_only_what_follows_the_snapshot_is_executed(home: Home, executed: list[int]) -> None:
    node = grown(home)
    head = node.chain.head
    assert snapshotter(node).write()
    numbers = range(head.number + 1)
    before, newest = answers(node, numbers), picture(node)[-DEPTH:]
    executed.clear()
    again = home.reopen()
    assert executed == list(range(11, head.number + 1))
    assert again.chain.head == head
    assert answers(again, numbers) == before
    assert (node.chain.oldest_state(), again.chain.oldest_state()) == (0, 10)
    old = again.chain.canonical_hash(5)
    with pytest.raises(StateUnavailableError):
        again.chain.layer_of(old)
    layer = again.chain.layer_of(head.hash)
    assert layer.balance(BOB) == 8 * 5
    again.submit(payment(again, 8))
    again.mine()
    assert [item[0] for item in newest] == [
        again.chain.block_by_number(number) for number in numbers[-DEPTH:]
    ]


def test_a_start_decodes_each_block_once(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    node = grown(home)
    assert snapshotter(node).write()
    head = node.chain.head.number
    decoded: list[Block] = []

    def counted(packed: bytes) -> Block:
        decoded.append(block_of(packed))
        return decoded[-1]

    monkeypatch.setattr(block_journal, "block_of", counted)
    assert home.reopen().chain.head.number == head
    assert [block.number for block in decoded] == list(range(1, head + 1))


def test_a_full_replay_has_the_states_of_all_blocks(home: Home) -> None:
    node = grown(home)
    snapshotter(node).write()
    before = picture(node)
    home.crash()
    again = dev_node(
        mining=Mining.MANUAL, accounts=2, directory=DataDirectory(home.path, full_replay=True)
    )
    assert picture(again) == before
    again.directory.close()


@pytest.mark.parametrize("damage", ["cut", "other", "journal"])
def test_a_snapshot_that_does_not_fit_costs_only_time(
    home: Home, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    node = grown(home)
    snapshotter(node).write()
    before, label = picture(node), node.directory.snapshots.file.label
    home.crash()
    file = home.path / "state.snapshot"
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-3])
    else:
        snapshots = state_snapshot.SnapshotFile(home.path, label)
        found = snapshots.read()
        block_hash = before[3][0].hash if damage == "other" else b"\x01" * 32
        snapshots.write(found._replace(block_hash=block_hash))
    assert picture(home.open()) == before
    assert "snapshot" in caplog.text


def test_a_branch_taken_after_the_snapshot_is_taken_again(home: Home) -> None:
    node = grown(home)
    snapshotter(node).write()
    chain = node.chain
    chain.set_head(chain.canonical_hash(40))
    node.submit(payment(node, 8))
    node.mine(50)
    head, balance = chain.head, chain.layer_of(chain.head.hash).balance(BOB)
    again = home.reopen().chain
    assert again.head == head
    assert again.layer_of(head.hash).balance(BOB) == balance


@pytest.mark.parametrize("fork", [3, 20])
def test_a_branch_left_before_the_snapshot_is_not_missed(home: Home, fork: int) -> None:
    node = grown(home, 30)
    chain = node.chain
    chain.set_head(chain.canonical_hash(fork))
    node.mine(DEPTH + 20)
    assert snapshotter(node).write()
    head = chain.head
    assert home.reopen().chain.head == head


def test_going_back_behind_the_snapshot_is_played_back_in_full(home: Home) -> None:
    node = grown(home)
    snapshotter(node).write()
    node.chain.set_head(node.chain.canonical_hash(2))
    node.mine(2)
    before = picture(node)
    assert picture(home.reopen()) == before


def test_snapshots_are_written_when_enough_gas_was_used(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_snapshot, "SNAPSHOT_GAS", 30 * state_snapshot.BLOCK_GAS)
    node = home.open()
    node.mine(DEPTH + 40)
    deadline = time.monotonic() + MAX_WAIT
    while not node.metrics().get("snapshot_number"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert node.directory.snapshots.read().layer.account_count > 2
    found = node.metrics()
    assert found["snapshot_number"] <= node.chain.head.number - DEPTH
    assert found["snapshot_seconds"] > 0


def test_a_snapshot_that_cannot_be_written_is_counted(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = grown(home)

    def full(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(node.directory.snapshots, "write", full)
    snapshotter(node).count(state_snapshot.SNAPSHOT_GAS)
    deadline = time.monotonic() + MAX_WAIT
    while not node.metrics().get("snapshot_failures_total"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_short_chain_and_an_amended_block_have_no_snapshot(home: Home) -> None:
    node = home.open()
    node.mine(DEPTH)
    assert not snapshotter(node).write()
    node.mine()
    target = node.chain.canonical_hash(1)
    node.chain.amend(target, {"0x" + BOB.hex(): {"balance": "0x1"}})
    assert not snapshotter(node).write()
