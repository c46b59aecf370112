"""Tests that a start with a saved archive index reads only the end of the journal."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.chain.retention import ChainLimits
from fastevm.chain.storage import Archive
from fastevm.chain.storage.archive_file import ArchiveFile
from fastevm.chain.storage.hash_index import HashIndex
from fastevm.chain.storage.state_snapshot import DEPTH
from fastevm.errors import BlockUnavailableError
from fastevm.node import Node

from .test_archive import everything
from .test_damage import db, flip, starts
from .test_data_directory import Home, payment
from .test_hash_index import filled, key

FEW = {"limits": ChainLimits(blocks=4)}
BLOCKS = DEPTH + 30


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Provides a node with a snapshot of block 30 and an archive of earlier blocks."""
    home = Home(tmp_path / "data")
    node = home.open(**FEW)
    for nonce in range(40):
        node.submit(payment(node, nonce))
        node.mine()
    node.mine(BLOCKS - 40)
    assert node.directory.snapshotter.write()
    yield home
    home.close()


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collects the numbers of blocks added to an archive."""
    numbers: list[int] = []
    append = Archive.append

    def counted(archive: Archive, old: Any) -> None:
        numbers.append(old.block.number)
        append(archive, old)

    monkeypatch.setattr(Archive, "append", counted)
    return numbers


def answers(node: Node) -> list[object]:
    """Returns everything that a chain reports, except which states are in memory."""
    chain = node.chain
    blocks = [chain.block_by_number(number) for number in range(chain.head.number + 1)]
    found: list[object] = [chain.head, chain.total_difficulty]
    for block in blocks:
        found += [block, chain.knows(block.hash), chain.is_canonical(block.hash)]
        found += [chain.canonical_hash(block.number), chain.receipts_of(block.hash)]
        found += [chain.ancestors(block.hash), chain.total_difficulty_of(block.hash)]
        found += [chain.schedule_of(block.hash).fork, chain.block_by_hash(block.hash)]
        found += [chain.locate(transaction.hash) for transaction in block.transactions]
    return found


def test_only_the_end_of_the_journal_is_read(home: Home, appended: list[int]) -> None:
    before = answers(home.node)
    appended.clear()
    node = home.reopen(**FEW)
    assert appended == list(range(30, BLOCKS - 3))
    assert answers(node) == before
    node.submit(payment(node, 40))
    assert len(node.mine()[0].transactions) == 1
    before = answers(node)
    assert node.directory.snapshotter.write()
    appended.clear()
    assert answers(home.reopen(**FEW)) == before
    assert appended[0] == 31


def test_all_states_and_blocks_are_those_of_a_start_without_the_file(home: Home) -> None:
    hashes = [home.node.chain.canonical_hash(number) for number in range(BLOCKS + 1)]
    with_file = everything(home.reopen(**FEW).chain, hashes)
    home.close()
    (home.path / "blocks.index").unlink()
    assert everything(home.open(**FEW).chain, hashes) == with_file


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "longer", "flipped", "header"])
def test_a_damaged_file_is_made_anew(home: Home, damage: str, appended: list[int]) -> None:
    before = answers(home.node)
    home.crash()
    file = home.path / "blocks.index"
    data = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "flipped":
        flip(file, len(data) // 2)
    elif damage == "header":
        flip(file, 50)
    else:
        file.write_bytes({"empty": b"", "cut": data[:-40], "longer": data + b"x"}[damage])
    appended.clear()
    assert answers(home.open(**FEW)) == before
    assert appended[0] == 1
    assert home.node.directory.snapshotter.write()
    appended.clear()
    assert answers(home.reopen(**FEW)) == before
    assert appended[0] == 30


def test_a_file_of_another_branch_is_not_used(home: Home) -> None:
    chain, saved = home.node.chain, (home.path / "blocks.index").read_bytes()
    chain.set_head(chain.canonical_hash(20))
    home.node.mine(BLOCKS)
    before = answers(home.node)
    assert answers(home.reopen(**FEW)) == before
    assert home.node.directory.snapshotter.write()
    home.crash()
    assert answers(home.open(**FEW)) == before
    home.crash()
    (home.path / "blocks.index").write_bytes(saved)  # the index of the old branch
    assert answers(home.open(**FEW)) == before


def test_an_older_file_serves_a_newer_snapshot(home: Home, appended: list[int]) -> None:
    saved = (home.path / "blocks.index").read_bytes()
    home.node.mine(20)
    assert home.node.directory.snapshotter.write()
    before = answers(home.node)
    home.crash()
    # as if the process had ended after it wrote the snapshot and before it wrote this file
    (home.path / "blocks.index").write_bytes(saved)
    appended.clear()
    assert answers(home.open(**FEW)) == before
    assert appended[0] == 30


@pytest.mark.parametrize("more", [1, 20])
def test_a_newer_file_does_not_serve_an_older_snapshot(
    home: Home, more: int, appended: list[int]
) -> None:
    saved = (home.path / "state.snapshot").read_bytes()
    home.node.mine(more)
    assert home.node.directory.snapshotter.write()
    before = answers(home.node)
    home.crash()
    (home.path / "state.snapshot").write_bytes(saved)
    appended.clear()
    assert answers(home.open(**FEW)) == before
    assert appended[0] == 1


def test_a_damaged_old_block_is_found_when_it_is_read(home: Home) -> None:
    before = answers(home.node)
    home.close()
    path = home.path / "blocks.log"
    flip(path, starts(path)[9] + 200)
    chain = home.open(**FEW).chain
    with pytest.raises(BlockUnavailableError, match=r"block 10 cannot be read: .*blocks\.log"):
        chain.block_by_number(10)
    assert chain.block_by_number(11).number == 11
    home.close()
    assert db(home, "verify") == 1
    assert db(home, "repair") == 0
    assert not (home.path / "blocks.index").exists()
    assert answers(home.open(**FEW)) == before


def test_damage_behind_the_archive_stops_the_start_with_all_counts(home: Home) -> None:
    home.close()
    path = home.path / "blocks.log"
    flip(path, starts(path)[50] + 200)
    with pytest.raises(ValueError, match=rf"; 50 records before it and {BLOCKS - 51} after it"):
        home.open(**FEW)


def test_a_journal_that_moved_is_noticed(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    before = answers(home.node)
    saved = (home.path / "blocks.index").read_bytes()
    home.node.chain.set_head(home.node.chain.canonical_hash(BLOCKS - 1))
    home.node.chain.set_head(home.node.chain.canonical_hash(BLOCKS - 2))
    home.close()
    path, first = home.path / "blocks.log", starts(home.path / "blocks.log")[:2]
    data = path.read_bytes()
    extra = data[first[0] : first[1]]  # repeats the first block, which shifts all offsets
    path.write_bytes(data[: first[0]] + extra + data[first[0] :])
    (home.path / "blocks.index").write_bytes(saved)
    node = home.open(**FEW)
    assert "does not fit the journal" in caplog.text
    assert node.chain.block_by_number(20) in before


def test_compaction_removes_the_file(home: Home) -> None:
    before = answers(home.node)
    home.close()
    assert db(home, "compact") == 0
    assert not (home.path / "blocks.index").exists()
    assert answers(home.open(**FEW)) == before


def test_rows_of_two_branches_are_not_saved(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, file = home.node.chain.archive, ArchiveFile(home.path, bytes(40))
    write = ArchiveFile.write

    def interrupted(*arguments: Any) -> None:
        archive.truncate(10)
        write(*arguments)

    monkeypatch.setattr(ArchiveFile, "write", interrupted)
    assert not archive.save(file, 31)
    assert not (home.path / "blocks.index").exists()


def test_a_full_disk_leaves_the_file_of_before(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, write = (home.path / "blocks.index").read_bytes(), os.write
    home.node.mine(20)

    def full(descriptor: int, data: bytes) -> int:
        return write(descriptor, data[:100])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="bytes written"):
            home.node.chain.archive.save(home.node.directory.snapshots.archive_file, 50)
    assert (home.path / "blocks.index").read_bytes() == saved
    assert not (home.path / "blocks.index.new").exists()
    assert home.node.directory.snapshotter.write()
    assert (home.path / "blocks.index").read_bytes() != saved


@pytest.mark.parametrize("count", [1, 7, 1_000, 5_003])
def test_a_merged_index_finds_what_the_index_found(count: int) -> None:
    index = filled(count, run_records=8)
    restored = HashIndex(run_records=8)
    restored.restore(index.merged())
    restored.add(key(count), count)
    restored.flush()
    for number in range(count + 1):
        assert list(restored.find(key(number))) == [number]
    assert list(restored.find(key(count + 1))) == []
