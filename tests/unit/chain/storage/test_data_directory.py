"""Tests that chain, pre-confirmed block and pool are restored, however the process ended."""

import errno
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.chain.storage import (
    DataDirectory,
    Fsync,
    StorageError,
    data_directory,
    pool_journal,
    preconfirmed,
)
from fastevm.chain.storage.record_file import RecordFile
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import FastevmError, InvalidTransaction
from fastevm.node import Mining, Node, dev_node
from fastevm.node.dev_chain import DEV_CHAIN_ID
from fastevm.node.production import PendingBlock
from tests.max_wait import MAX_WAIT

BOB = b"\xb0" * 20
FAST = {"block_time_ms": 400, "slice_interval_ms": 50}


class Home:
    """A data directory and its node. ``crash`` leaves the files as kill -9 would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.node: Node | None = None

    def open(self, fsync: Fsync = Fsync.EVERYSEC, **options: Any) -> Node:
        values = {"mining": Mining.MANUAL, "accounts": 2} | options
        directory = DataDirectory(self.path, fsync=fsync)
        try:
            self.node = dev_node(directory=directory, **values)
        except ValueError:
            directory.close()
            raise
        return self.node

    def crash(self) -> None:
        """Copies the files, closes the node, and continues with the copy, as after a kill."""
        copy = self.path.with_name(self.path.name + "+")
        shutil.copytree(self.path, copy)
        self.close()
        self.path = copy

    def close(self) -> None:
        if self.node is not None:
            self.node.directory.close()
        self.node = None

    def reopen(self, **options: Any) -> Node:
        self.crash()
        return self.open(**options)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "data")
    yield home
    home.close()


def payment(node: Node, nonce: int, **fields: Any) -> bytes:
    values = {"to": BOB, "value": 5, "gas_limit": 21_000, "chain_id": DEV_CHAIN_ID, "nonce": nonce}
    prices = {"max_fee_per_gas": 10**10, "max_priority_fee_per_gas": 1}
    key = node.accounts[0].private_key
    return Transaction.build(**{**values, **prices, **fields}).sign(key).raw


def picture(node: Node) -> list[Any]:
    """Returns block, receipts and state root of every canonical block."""
    chain, found = node.chain, []
    for number in range(chain.head.number + 1):
        block = chain.block_by_number(number)
        layer = chain.layer_of(block.hash)
        found.append((block, chain.receipts_of(block.hash), layer.state_root()))
    return found


@pytest.mark.parametrize("fsync", list(Fsync))
def test_a_chain_is_the_same_after_the_process_died(home: Home, fsync: Fsync) -> None:
    node = home.open(fsync=fsync)
    for nonce in range(4):
        node.submit(payment(node, nonce))
        node.mine()
    before = picture(node)
    again = home.reopen()
    assert picture(again) == before
    tx_hash = before[2][0].transactions[0].hash
    assert again.chain.locate(tx_hash) == (before[2][0], 0)
    again.submit(payment(again, 4))
    again.mine()
    assert picture(home.reopen())[:-1] == before


def test_blocks_that_were_cut_off_are_missing_and_the_rest_is_there(home: Home) -> None:
    node = home.open()
    node.mine(3)
    home.crash()
    file = home.path / "blocks.log"
    file.write_bytes(file.read_bytes()[:-10])
    again = home.open()
    assert again.chain.head.number == 2
    assert again.metrics()["datadir_cut_bytes"] > 0
    again.mine()
    assert home.reopen().chain.head.number == 3


def test_reorganisations_and_forced_heads_are_played_back(home: Home) -> None:
    node = home.open()
    first = node.mine(2)[-1]
    chain = node.chain
    chain.set_head(chain.genesis.hash)
    node.submit(payment(node, 0))
    other = node.mine(2)[-1]
    assert chain.head == other
    assert home.reopen().chain.head == other
    home.node.chain.set_head(first.hash)
    again = home.reopen().chain
    assert again.head == first
    assert again.block_by_hash(other.hash) == other


def test_amended_accounts_are_amended_again(home: Home) -> None:
    node = home.open()
    node.mine()
    amended = {"0x" + BOB.hex(): {"balance": "0x77", "storage": {"0x1": "0x2"}}}
    node.chain.amend(node.chain.head.hash, amended)
    node.mine()
    chain = home.reopen().chain
    layer = chain.layer_of(chain.head.hash)
    assert (layer.balance(BOB), layer.storage(BOB, 1)) == (0x77, 2)


def test_what_waited_waits_again_and_what_was_included_does_not(home: Home) -> None:
    node = home.open()
    node.submit(payment(node, 0))
    node.mine()
    waiting = [node.submit(payment(node, nonce)) for nonce in (1, 2, 5)]
    again = home.reopen()
    assert [again.pool.find(item).hash for item in waiting] == waiting
    assert len(again.pool) == 3
    assert again.metrics()["pool_restored"] == 3
    again.mine()
    assert len(home.reopen().pool) == 1


def test_the_pool_is_tidied_up_when_its_file_has_grown(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_journal, "MIN_COMPACTION_BYTES", 1_000)
    node = home.open()
    for nonce in range(20):
        node.submit(payment(node, nonce))
        node.mine()
    assert node.directory.pool.file.size < 1_500
    kept = node.submit(payment(node, 20))
    assert home.reopen().pool.find(kept) is not None


def test_a_transaction_that_cannot_be_written_down_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = home.open()

    def full(*arguments: object) -> None:
        raise OSError("416 of 3156 bytes written")

    monkeypatch.setattr(node.directory.pool.file, "append", full)
    with pytest.raises(InvalidTransaction, match="data directory: not all bytes were written"):
        node.submit(payment(node, 0))
    assert not node.pool


def test_no_block_includes_a_transaction_before_it_is_written(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = home.open()
    raw = payment(node, 0)

    def full(*arguments: object) -> None:
        # a block must not include the transaction before it is stored
        assert not any(block.transactions for block in node.mine())
        raise OSError(errno.ENOSPC, "No space left on device", "/secret/pool.log")

    monkeypatch.setattr(node.directory.pool.file, "append", full)
    with pytest.raises(InvalidTransaction, match=r"data directory: no space left on device$"):
        node.submit(raw)
    assert not node.pool
    assert not any(block.transactions for block in node.mine())


def test_a_block_that_cannot_be_written_down_does_not_happen(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = home.open()
    node.submit(payment(node, 0))

    def full(*arguments: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(node.directory.blocks.file, "append", full)
        with pytest.raises(OSError, match="no space left"):
            node.mine()
        assert node.chain.head == node.chain.genesis
    node.producer.abandon()
    assert len(node.mine()[0].transactions) == 1


def test_a_slice_that_cannot_be_written_down_is_not_published_and_the_node_goes_on(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = home.open(mining=Mining.CADENCE, **FAST)
    keep, published = node.directory.slices.keep, []
    failing = iter([True] * 3)

    def full(pending: PendingBlock) -> None:
        if pending.transactions and next(failing, False):
            raise OSError("no space left")
        keep(pending)
        published.append(pending)

    monkeypatch.setattr(node.directory.slices, "keep", full)
    node.producer.start()
    tx_hash = node.submit(payment(node, 0))
    deadline = time.monotonic() + MAX_WAIT
    while node.chain.locate(tx_hash) is None:
        pending = node.pending()
        assert not pending.transactions or pending in published
        assert time.monotonic() < deadline
        time.sleep(0.01)
    node.producer.stop()
    assert node.metrics()["slice_failures_total"] == 3


def test_a_disk_that_cannot_be_flushed_is_counted(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(data_directory, "FLUSH_SECONDS", 0.01)

    def broken(file: RecordFile) -> None:
        raise OSError("input/output error")

    node = home.open()
    with monkeypatch.context() as patch:
        patch.setattr(RecordFile, "sync", broken)
        node.mine()
        deadline = time.monotonic() + MAX_WAIT
        while not node.metrics().get("datadir_flush_failures_total"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert "could not be flushed to the disk: input/output error" in caplog.text
    assert node.chain.head.number == 1


def published_block(node: Node, *slices: int) -> None:
    """Begins a block and publishes slices. ``slices``: number of payments in each slice."""
    producer, nonce = node.producer, 0
    node.built(producer.begin(node.chain.head.header.timestamp + 2))
    for count in slices:
        for _ in range(count):
            node.submit(payment(node, nonce))
            nonce += 1
        producer.fill(node.chain.head.header.gas_limit)
        node.built(producer.close_slice())


def test_what_was_pre_confirmed_is_sealed_after_the_process_died(home: Home) -> None:
    node = home.open()
    node.mine()
    published_block(node, 2, 0, 1)
    promised = node.pending()
    unpublished = node.submit(payment(node, 3))
    again = home.reopen()
    head = again.chain.head
    assert head.transactions == promised.transactions
    assert head.header.receipts_root == promised.header.receipts_root
    assert head.header.timestamp == promised.header.timestamp
    assert again.metrics()["promises_kept_total"] == 1
    assert [transaction.hash for transaction in again.chain.head.transactions].count(
        unpublished
    ) == 0
    assert again.pool.find(unpublished) is not None
    assert len(again.pool) == 1
    assert home.reopen().chain.head == head


def test_a_pre_confirmed_block_is_sealed_once_and_only_on_its_parent(home: Home) -> None:
    node = home.open()
    published_block(node, 1)
    node.producer.seal()
    assert home.reopen().chain.head.number == 1
    node = home.node
    preconfirmed_block = node.directory.slices.newest()
    assert preconfirmed_block.draft.number == 1
    assert "promises_kept_total" not in node.metrics()


def test_the_slices_of_old_blocks_are_forgotten_now_and_then(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preconfirmed, "MAX_BYTES", 5_000)
    node = home.open()
    for _ in range(20):
        published_block(node, 0)
        node.producer.seal()
    assert node.directory.slices.file.size < 6_000
    published_block(node, 1)
    assert len(home.reopen().chain.head.transactions) == 1


def test_a_pre_confirmed_block_without_transactions_is_not_sealed(home: Home) -> None:
    published_block(home.open(), 0, 0)
    assert home.reopen().chain.head.number == 0


def test_a_pre_confirmed_block_that_cannot_be_sealed_is_reported(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    published_block(home.open(), 2)

    def broken(*arguments: object) -> None:
        raise FastevmError("it came out otherwise")

    monkeypatch.setattr("fastevm.node.storage.seal_preconfirmed", broken)
    again = home.reopen()
    assert again.metrics()["promises_broken_total"] == 1
    assert len(again.pool) == 2


def test_a_directory_serves_one_node_at_a_time(home: Home) -> None:
    home.open()
    with pytest.raises(StorageError, match=r"in use by another node \(process \d+\)"):
        DataDirectory(home.path)
    home.close()
    DataDirectory(home.path).close()


@pytest.mark.parametrize(
    "options", [{"timestamp": 5}, {"accounts": 3}, {"chain_id": 5}, {"timestamp": 5, "chain_id": 5}]
)
def test_another_chain_is_refused_and_both_are_named(home: Home, options: dict[str, int]) -> None:
    node = home.open(timestamp=4)
    mine = "0x" + node.chain.genesis.hash.hex()
    home.crash()
    opened = DataDirectory(home.path)
    with pytest.raises(StorageError, match=f"holds another chain: genesis {mine} of chain id"):
        dev_node(directory=opened, **{"accounts": 2, "mining": Mining.MANUAL} | options)
    opened.close()
    assert home.open(timestamp=4).chain.genesis == node.chain.genesis


def test_a_genesis_that_is_no_json_is_named(home: Home) -> None:
    home.open()
    home.crash()
    (home.path / "genesis.json").write_text("{")
    opened = DataDirectory(home.path)
    with pytest.raises(StorageError, match=r"genesis\.json"):
        _ = opened.genesis
    opened.close()


def test_a_journal_that_does_not_fit_the_rules_is_named(home: Home) -> None:
    node = home.open()
    node.mine(2)
    home.crash()
    file = node.directory.blocks.file
    journal = DataDirectory(home.path)
    journal.claim(journal.genesis, node.chain.genesis.hash, DEV_CHAIN_ID)
    records = [(record.kind, record.payload) for record in journal.blocks.file.records()]
    journal.blocks.file.rewrite(records[1:])
    journal.close()
    with pytest.raises(StorageError, match=f"{file.path.name}: the record that ends at byte"):
        home.open()


def test_an_abandoned_chain_is_put_aside(home: Home) -> None:
    node = home.open(timestamp=4)
    node.mine()
    home.close()
    opened = DataDirectory(home.path)
    aside = opened.abandon()
    assert {file.name for file in aside.iterdir()} == {
        "blocks.log", "development.log", "genesis.json", "pool.log", "preconfirmed.log",
        "state.snapshot",
    }  # fmt: skip
    opened.close()
    assert home.open(timestamp=5).chain.head.number == 0


def test_chains_are_not_abandoned_without_end(home: Home) -> None:
    opened = DataDirectory(home.path)
    for _ in range(data_directory.MAX_ABANDONED):
        opened.abandon()
    with pytest.raises(StorageError, match="abandoned chains already"):
        opened.abandon()
    opened.close()
