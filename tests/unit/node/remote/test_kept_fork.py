"""Tests that the next node on a fork's data directory restores all local changes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.__main__ import main
from fastevm.bench.node.launch import ServerThread
from fastevm.chain.storage import DataDirectory, StorageError, state_snapshot
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import ForkError
from fastevm.node import Mining, Node, dev_node, forked_node
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.remote.options import ForkOptions

COUNTER, BOB, CAROL = b"\xc0" * 20, b"\xb0" * 20, b"\xca" * 20
# adds 1 to slot 7 and logs the sum
COUNTER_CODE = bytes.fromhex("6007546001018060075560005260206000a000")
BEFORE = 41  # slot 7 of the counter at the fork
ACCOUNTS = dev_accounts(2)


def counting(nonce: int, **fields: Any) -> bytes:
    """Returns a transaction that increments the counter."""
    values = {
        "to": COUNTER, "gas_limit": 100_000, "chain_id": 31_337, "nonce": nonce,
        "max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 1, **fields,
    }  # fmt: skip
    return Transaction.build(**values).sign(ACCOUNTS[0].private_key).raw


def upstream_node(number: int = 9) -> Node:
    node = dev_node(mining=Mining.MANUAL, accounts=3, timestamp=1_700_000_000)
    node.development.required().amend(
        {hex_bytes(COUNTER): {"code": hex_bytes(COUNTER_CODE), "storage": {"0x7": hex(BEFORE)}}}
    )
    node.mine(number)
    return node


@pytest.fixture(scope="module")
def upstream() -> Iterator[ServerThread]:
    with ServerThread(upstream_node()) as server:
        yield server


class Home:
    """A data directory of a fork. One node after another uses it."""

    def __init__(self, path: Path, url: str) -> None:
        self.path, self.url = path, url
        self.node: Node | None = None

    def open(self, mining: Mining = Mining.MANUAL, **options: Any) -> Node:
        """Abandons the current node, as kill -9 does, and starts the next node."""
        self.close()
        fork = {
            name: options.pop(name) for name in ("block", "offline", "chain_id") if name in options
        }
        directory = DataDirectory(self.path)
        try:
            self.node = forked_node(
                ForkOptions(urls=(options.pop("url", self.url),), retries=0, **fork),
                accounts=2,
                mining=mining,
                directory=directory,
                **options,
            )
        except BaseException:
            directory.close()
            raise
        return self.node

    def close(self) -> None:
        if self.node is not None and self.node.directory is not None:
            self.node.remote.close()
            self.node.directory.close()
            self.node = None


@pytest.fixture
def home(tmp_path: Path, upstream: ServerThread) -> Iterator[Home]:
    home = Home(tmp_path / "data", upstream.url())
    yield home
    home.close()


def control(node: Node) -> Any:
    return node.development.required()


def counted(node: Node) -> int:
    return node.chain.layer_of(node.chain.head.hash).storage(COUNTER, 7)


def count(node: Node, times: int = 1) -> None:
    for _ in range(times):
        nonce = node.chain.layer_of(node.chain.head.hash).nonce(ACCOUNTS[0].address)
        node.submit(counting(nonce))
        node.mine()


def test_blocks_transactions_and_receipts_are_there_again(home: Home) -> None:
    node = home.open()
    first = node.chain.genesis
    count(node, 3)
    hashes = [node.chain.canonical_hash(number) for number in range(9, 13)]
    node = home.open()
    assert node.chain.genesis.hash == first.hash
    assert [node.chain.canonical_hash(number) for number in range(9, 13)] == hashes
    assert counted(node) == BEFORE + 3
    block = node.chain.block_by_number(11)
    assert block is not None
    (receipt,) = node.chain.receipts_of(block.hash)
    assert receipt.status == 1 and receipt.logs[0].address == COUNTER
    assert node.chain.locate(block.transactions[0].hash) == (block, 0)
    count(node)
    assert (node.chain.head.number, counted(node)) == (13, BEFORE + 4)


def test_changes_without_blocks_are_there_again(home: Home) -> None:
    node = home.open()
    count(node)
    control(node).amend(
        {
            hex_bytes(BOB): {"balance": "0x7", "code": "0x6001", "storage": {"0x5": "0x6"}},
            hex_bytes(COUNTER): {"storage": {"0x7": "0x0"}},
        }
    )
    control(node).amend({hex_bytes(ACCOUNTS[1].address): None})
    for _ in range(2):
        node = home.open()
        layer = node.chain.layer_of(node.chain.head.hash)
        assert (layer.balance(BOB), layer.code(BOB), layer.storage(BOB, 5)) == (7, b"\x60\x01", 6)
        assert layer.storage(COUNTER, 7) == 0
        assert layer.account(ACCOUNTS[1].address) is None
    count(node)
    assert counted(node) == 1


def test_settings_of_a_developer_are_there_again(home: Home) -> None:
    node = home.open()
    found = control(node)
    found.time.increase(1_000_000)
    found.impersonation.start(BOB)
    found.impersonation.start(CAROL, listed=False)
    found.settings.set_gas_limit(12_345_678)
    found.settings.set_coinbase(CAROL)
    ahead = node.producer.clock.offset
    node = home.open()
    assert node.producer.clock.offset == ahead
    assert control(node).impersonation.accounts == (BOB, CAROL)
    assert control(node).impersonation.listed == (BOB,)
    control(node).settings.set_next_base_fee(7)
    control(node).time.set_next(2_000_000_000)
    node = home.open()
    (block,) = node.mine()
    header = block.header
    assert (header.timestamp, header.base_fee_per_gas) == (2_000_000_000, 7)
    assert (header.gas_limit, header.coinbase) == (12_345_678, CAROL)
    ahead = node.producer.clock.offset
    node = home.open()
    assert node.chain.head.hash == block.hash
    assert node.producer.clock.offset == ahead > 0
    for address in (BOB, CAROL):
        control(node).impersonation.stop(address)
    assert control(home.open()).impersonation.accounts == ()


def test_waiting_transactions_are_there_again(home: Home) -> None:
    node = home.open()
    node.submit(counting(0))
    node = home.open()
    assert len(node.pool) == 1
    node.mine()
    assert counted(node) == BEFORE + 1


def test_a_published_block_is_sealed_by_the_next_node(home: Home) -> None:
    pace = {"block_time_ms": 60_000, "slice_interval_ms": 100}
    node = home.open(Mining.CADENCE, **pace)
    node.submit(counting(0))
    with node.producer.lock:
        node.built(node.producer.begin(1_700_000_100))
        while not node.producer.fill(30_000_000):
            node.producer.missing_state.fetch(Transaction.decode(counting(0)))
            node.pool.reset(node.chain.layer_of(node.chain.head.hash))
        node.built(node.producer.close_slice())
    node = home.open(Mining.CADENCE, **pace)
    assert node.chain.head.number == 10 and len(node.chain.head.transactions) == 1
    assert counted(node) == BEFORE + 1
    with pytest.raises(StorageError, match="was made with a block time of 60000 ms"):
        home.open(Mining.CADENCE)


def test_numbered_snapshots_are_there_again(home: Home) -> None:
    node = home.open()
    count(node)
    first = control(node).snapshot()
    count(node, 2)
    second = control(node).snapshot()
    control(node).amend({hex_bytes(BOB): {"balance": "0x7"}})
    node = home.open()
    assert control(node).snapshots().keys() == {first, second}
    assert control(node).snapshot() == second + 1
    assert control(node).revert(second)
    assert (counted(node), node.chain.head.number) == (BEFORE + 3, 12)
    assert node.chain.layer_of(node.chain.head.hash).balance(BOB) == 0
    node = home.open()
    assert (counted(node), node.chain.layer_of(node.chain.head.hash).balance(BOB)) == (44, 0)
    assert control(node).revert(first) and not control(node).revert(second)
    assert counted(home.open()) == BEFORE + 1


def test_named_snapshots_are_there_again_after_both_branches(home: Home) -> None:
    node = home.open()
    count(node)
    control(node).save_snapshot("base")
    count(node, 2)
    control(node).amend({hex_bytes(BOB): {"balance": "0x7"}})
    control(node).save_snapshot("later.1")
    control(node).amend({hex_bytes(BOB): {"balance": "0x8"}})
    assert control(node).restore_snapshot("base")
    node.mine(4)
    for _ in range(2):
        node = home.open()
        assert control(node).named_snapshots().keys() == {"base", "later.1"}
        assert control(node).restore_snapshot("later.1")
        head = node.chain.head
        assert (counted(node), head.number) == (BEFORE + 3, 12)
        assert node.chain.layer_of(head.hash).balance(BOB) == 7
        node = home.open()
        assert node.chain.head.hash == head.hash
        assert node.chain.layer_of(head.hash).balance(BOB) == 7
        assert control(node).restore_snapshot("base") and counted(node) == BEFORE + 1
    assert control(node).delete_snapshot("base") and not control(node).delete_snapshot("base")
    assert not control(home.open()).restore_snapshot("base")


@pytest.mark.parametrize("name", ["", ".", "a/b", "../x", "x" * 65, "ä"])
def test_names_that_are_no_file_names_are_refused(home: Home, name: str) -> None:
    with pytest.raises(ValueError, match="name of a snapshot"):
        control(home.open()).save_snapshot(name)


def test_a_snapshot_of_the_state_holds_zeroed_and_removed_values(home: Home) -> None:
    node = home.open()
    control(node).amend({hex_bytes(COUNTER): {"storage": {"0x7": "0x0"}}})
    control(node).amend({hex_bytes(ACCOUNTS[1].address): None})
    assert node.directory is not None and node.directory.snapshotter is not None
    assert node.directory.snapshotter.write()  # the snapshot of the first block
    node.mine(2)
    control(node).amend({hex_bytes(BOB): {"balance": "0x7"}})
    assert node.directory.snapshotter.write()
    control(node).amend({hex_bytes(BOB): {"balance": "0x8"}})
    node = home.open()
    layer = node.chain.layer_of(node.chain.head.hash)
    assert (layer.storage(COUNTER, 7), layer.balance(BOB)) == (0, 8)
    assert layer.account(ACCOUNTS[1].address) is None
    # the state of block 10 is missing, because the block was not executed again
    with pytest.raises(Exception, match="no longer kept"):
        node.chain.layer_of(node.chain.canonical_hash(10) or b"")
    count(node)
    assert counted(home.open()) == 1


def test_a_revert_below_the_snapshot_of_the_state_is_restored(home: Home) -> None:
    node = home.open()
    number = control(node).snapshot()
    count(node, 2)
    assert node.directory is not None and node.directory.snapshotter is not None
    assert node.directory.snapshotter.write()
    assert control(node).revert(number)
    count(node)
    assert (counted(node), node.chain.head.number) == (BEFORE + 1, 10)
    node = home.open()
    assert (counted(node), node.chain.head.number) == (BEFORE + 1, 10)


def test_the_same_block_built_again_after_a_revert_is_restored(home: Home) -> None:
    node = home.open()
    control(node).time.set_next(2_000_000_000)
    number = control(node).snapshot()
    first = node.mine()[0]
    node.mine(2)
    control(node).amend({hex_bytes(BOB): {"balance": "0x7"}})
    assert control(node).revert(number)
    (again,) = node.mine()
    assert again.hash == first.hash
    assert node.directory is not None and node.directory.snapshotter is not None
    for written in (False, True):
        if written:
            assert node.directory.snapshotter.write()
        node = home.open()
        assert node.chain.head.hash == first.hash
        assert node.directory is not None and node.directory.snapshotter is not None
    control(node).amend({hex_bytes(BOB): {"balance": "0x8"}})
    node = home.open()
    assert node.chain.layer_of(first.hash).balance(BOB) == 8


# --- the upstream ---------------------------------------------------------------------------------


def test_what_was_read_needs_no_upstream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ServerThread(upstream_node()) as server:
        home = Home(tmp_path / "data", server.url())
        count(home.open(), 2)
    for options in ({}, {"offline": True}):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            node = home.open(**options)
        assert ("only cached state is available" in caplog.text) is not bool(options)
        count(node)
        with pytest.raises(ForkError, match="offline" if options else "refused"):
            node.chain.layer_of(node.chain.head.hash).balance(b"\x99" * 20)
    assert counted(node) == BEFORE + 4
    home.close()


def test_values_stay_as_they_were_read_first(tmp_path: Path) -> None:
    with ServerThread(upstream_node()) as server:
        home = Home(tmp_path / "data", server.url())
        count(home.open())
        with server.client() as client:
            client.call("anvil_setStorageAt", hex_bytes(COUNTER), "0x7", "0x0")
        node = home.open()
        assert counted(node) == BEFORE + 1
        home.close()


def test_another_chain_or_block_at_the_upstream_is_an_error(home: Home) -> None:
    home.open().mine()
    home.close()
    with ServerThread(upstream_node(10)) as other, pytest.raises(ForkError) as caught:
        home.open(url=other.url())
    assert "the fork begins at block 9 (0x" in str(caught.value)
    assert "another chain, or this block was reorganised away" in str(caught.value)
    with ServerThread(upstream_node(3)) as other, pytest.raises(ForkError) as caught:
        home.open(url=other.url())
    assert "the endpoint has no such block" in str(caught.value)
    another = dev_node(mining=Mining.MANUAL, accounts=1, chain_id=1_337)
    with ServerThread(another) as other, pytest.raises(ForkError) as caught:
        home.open(url=other.url())
    assert "expected chain 31337, found 1337" in str(caught.value)
    assert home.open().chain.head.number == 10


def test_options_that_contradict_the_directory_are_refused(home: Home, tmp_path: Path) -> None:
    home.open().mine()
    for options, text in (
        ({"block": 5}, "holds a fork with block 9, not 5"),
        ({"chain_id": 1}, "holds a fork with chain 31337, not 1"),
        ({"parameters": {"tx_gas_cap": 0}}, "with the rules {}, not {'tx_gas_cap': 0}"),
    ):
        with pytest.raises(StorageError, match=text):
            home.open(**options)  # type: ignore[arg-type]
    assert home.open(block=9).chain.head.number == 10
    home.close()
    directory = DataDirectory(home.path)
    with pytest.raises(StorageError, match=r"holds a fork of chain 31337 at block 9 .*--fork-url"):
        dev_node(directory=directory)
    directory.close()
    directory = DataDirectory(tmp_path / "own")
    dev_node(directory=directory).mine()
    directory.close()
    with pytest.raises(StorageError, match="holds a chain of its own, not a fork"):
        Home(tmp_path / "own", home.url).open()


def test_database_commands_read_a_fork_without_its_upstream(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = home.open()
    count(node, 3)
    control(node).settings.set_gas_limit(12_345_678)
    node.mine()
    home.close()
    for action in (("verify",), ("stats",), ("compact",), ("verify",)):
        assert main(["db", *action, "--datadir", str(home.path)]) == 0
    assert "4 blocks" in capsys.readouterr().out
    target = tmp_path / "blocks.rlp"
    assert main(["db", "export", "--datadir", str(home.path), str(target)]) == 0
    assert "exported blocks up to 13" in capsys.readouterr().out
    assert counted(home.open()) == BEFORE + 3


def test_many_local_slots_are_restored_without_their_changes(home: Home) -> None:
    node = home.open()
    for at in range(10):
        slots = {hex(slot): "0x1" for slot in range(at * 1_000, at * 1_000 + 1_000)}
        control(node).amend({hex_bytes(BOB): {"storage": slots}})
    assert node.directory is not None and node.directory.snapshotter is not None
    assert node.directory.snapshotter.write()
    size = node.directory.blocks.file.size
    node = home.open()
    assert node.directory is not None
    assert node.directory.snapshots.file.size < size
    layer = node.chain.layer_of(node.chain.head.hash)
    assert len(layer.storage_items(BOB)) == 10_000
    assert state_snapshot.FORK_SNAPSHOT_GAS < state_snapshot.SNAPSHOT_GAS
