"""Tests that a chain with two blocks in memory answers like a chain with all blocks in memory."""

import errno
import gc
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fastevm.chain.chain import Chain
from fastevm.chain.retention import MIN_BLOCKS, ChainLimits
from fastevm.chain.storage import Archive, DataDirectory, ScratchBlocks
from fastevm.chain.storage import archive as archive_module
from fastevm.chain.storage.block_journal import BlockJournal
from fastevm.core.execution.types import Block
from fastevm.errors import BlockUnavailableError, StateUnavailableError, UnknownBlockError
from fastevm.node.from_genesis import dev_node
from fastevm.node.node import Mining, Node
from tests.shared_data import ROOT
from tests.unit.chain.blocks import build, grow, new_chain, payment

TWO = ChainLimits(blocks=2)
UNKNOWN = b"\x77" * 32


def archived(fork: str = "Osaka", limits: ChainLimits = TWO, **members: object) -> Chain:
    chain = new_chain(fork, limits=limits, **members)
    chain.archive = Archive(ScratchBlocks(), cached_bytes=1)
    return chain


def everything(chain: Chain, hashes: list[bytes]) -> list[object]:
    """Returns everything that a chain reports about itself and these blocks."""
    reported: list[object] = [chain.head.hash, chain.total_difficulty, chain.oldest_state()]
    for number in range(-1, chain.head.number + 2):
        reported += [chain.canonical_hash(number), chain.block_by_number(number)]
    for block_hash in [*hashes, UNKNOWN]:
        reported += [chain.knows(block_hash), chain.is_canonical(block_hash)]
        reported += [chain.block_by_hash(block_hash), chain.has_state(block_hash)]
        for question in (
            chain.receipts_of,
            chain.total_difficulty_of,
            chain.ancestors,
            lambda asked: chain.ancestors(asked, 3),
            lambda asked: chain.schedule_of(asked).parameters,
            lambda asked: chain.layer_of(asked).state_root(),
        ):
            reported.append(answer(question, block_hash))
        block = chain.block_by_hash(block_hash)
        for transaction in () if block is None else block.transactions:
            reported.append(chain.locate(transaction.hash))
    return [*reported, chain.locate(UNKNOWN)]


def answer(question: Callable[[bytes], object], block_hash: bytes) -> object:
    try:
        return question(block_hash)
    except (UnknownBlockError, StateUnavailableError) as error:
        return str(error)


def test_two_blocks_in_memory_tell_what_all_would_through_reorganisations() -> None:
    whole, small = new_chain("Paris"), archived("Paris")
    hashes = [whole.genesis.hash]

    def add(parent: Block, *transactions: object, **changes: object) -> Block:
        block = build(whole, parent=parent, transactions=transactions, **changes)[0]
        for chain in (whole, small):
            chain.add(block)
        hashes.append(block.hash)
        return block

    trunk = [whole.genesis]
    for nonce in range(8):
        trunk.append(add(trunk[-1], payment(2 * nonce), payment(2 * nonce + 1)))
    assert small.archive is not None
    assert small.archive.numbers == range(1, 7)
    assert everything(small, hashes) == everything(whole, hashes)
    branch = trunk[3]
    for nonce in range(6, 12):  # branches off far below the blocks in memory
        branch = add(branch, payment(nonce), extra_data=b"branch")
    assert whole.head == branch
    assert everything(small, hashes) == everything(whole, hashes)
    for target in (trunk[8], trunk[2], trunk[7], whole.genesis, branch):
        changes = [chain.set_head(target.hash) for chain in (whole, small)]
        assert changes[0] == changes[1]
        assert everything(small, hashes) == everything(whole, hashes)
        if target is not branch:
            add(target, extra_data=b"next")
            assert everything(small, hashes) == everything(whole, hashes)


@pytest.mark.parametrize("fork", ["Frontier", "London", "Shanghai", "Osaka"])
def test_blocks_of_every_era_come_back_as_they_were(fork: str) -> None:
    whole, small = new_chain(fork), archived(fork)
    hashes = []
    for nonce in range(6):
        block = grow(whole, transactions=[payment(nonce)])
        small.add(block)
        hashes.append(block.hash)
    assert everything(small, hashes) == everything(whole, hashes)


def test_an_old_state_goes_and_an_old_block_stays() -> None:
    chain = archived(limits=ChainLimits(blocks=2, states=4))
    grow(chain, 8)
    assert chain.oldest_state() == 5
    with pytest.raises(StateUnavailableError, match="block 4 "):
        chain.layer_of(chain.block_by_number(4).hash)
    assert chain.layer_of(chain.block_by_number(5).hash) is not None


def test_gas_bounds_what_is_kept() -> None:
    """If the blocks in memory used more gas than the limit, the chain keeps only MIN_BLOCKS."""
    chain = archived(limits=ChainLimits(block_gas=1, state_gas=1))
    grow(chain, MIN_BLOCKS + 3, transactions=())
    assert chain.archive is not None
    assert not chain.archive.numbers, "what used no gas stays"
    for nonce in range(2):
        grow(chain, transactions=[payment(nonce)])
    assert chain.archive.numbers == range(1, 6)


def test_an_old_state_can_be_amended_and_built_on() -> None:
    chain = archived()
    grow(chain, 6)
    old = chain.block_by_number(2)
    chain.set_head(old.hash)
    chain.amend(old.hash, {"33" * 20: {"balance": "0x5"}})
    assert chain.layer_of(chain.head.hash).balance(b"\x33" * 20) == 5
    grow(chain, 4)
    assert chain.layer_of(chain.head.hash).balance(b"\x33" * 20) == 5


def test_a_damaged_file_is_reported_and_harms_nothing_else(tmp_path: Path) -> None:
    node = journaled(tmp_path)
    node.mine(8)
    chain = node.chain
    journal = chain.journal
    assert isinstance(journal, BlockJournal)
    blocks = [record for record in journal.file.records() if record.kind == 1]
    with (tmp_path / "blocks.log").open("r+b") as file:
        file.seek(blocks[2].start + 40)
        file.write(b"\xff\xff\xff")
    with pytest.raises(BlockUnavailableError, match=r"block 3 cannot be read: .*blocks\.log"):
        chain.block_by_number(3)
    assert chain.block_by_number(2).number == 2
    node.mine()
    assert chain.head.number == 9


def test_another_block_in_its_place_is_no_answer() -> None:
    chain = archived()
    grow(chain, 6)
    assert isinstance(chain.archive, Archive)
    first = chain.archive.store.read(0)
    chain.archive.store.read = lambda position: first  # type: ignore[method-assign]
    with pytest.raises(BlockUnavailableError, match="the file has another block at its position"):
        chain.block_by_number(3)


def test_blocks_that_cannot_be_written_stay_in_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    chain = archived()

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        grow(chain, 6)
    assert "stay in memory: " in caplog.text
    assert chain.archive is not None
    assert not chain.archive.numbers
    assert [chain.block_by_number(number).number for number in range(7)] == list(range(7))
    grow(chain)
    assert chain.archive.numbers == range(1, 6)
    assert [chain.block_by_number(number).number for number in range(8)] == list(range(8))


def journaled(path: Path, **options: object) -> Node:
    directory = DataDirectory(path, **options)
    return dev_node(mining=Mining.MANUAL, directory=directory, limits=TWO)


def test_a_chain_comes_back_from_its_directory_with_its_old_blocks(tmp_path: Path) -> None:
    before = journaled(tmp_path)
    blocks = before.mine(3)
    before.development.revert(before.development.snapshot())
    blocks += before.mine(4)
    hashes = [block.hash for block in blocks]
    reported = everything(before.chain, hashes)
    assert before.directory is not None
    before.directory.close()
    after = journaled(tmp_path)
    assert everything(after.chain, hashes) == reported
    assert after.chain.archive is not None
    assert after.chain.archive.numbers == range(1, 6)
    after.mine(3)
    assert after.chain.block_by_number(4) == blocks[3]
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "LOCK", "blocks.log", "development.log", "genesis.json", "pool.log", "preconfirmed.log",
        "state.snapshot",
    ], "the index leaves nothing behind"  # fmt: skip


def test_the_blocks_read_last_are_kept_as_far_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = new_chain(limits=TWO)
    # the cache holds about three empty blocks
    chain.archive = Archive(ScratchBlocks(), cached_bytes=2_000)
    grow(chain, 10)
    read: list[bytes] = []
    decode = archive_module.block_of
    monkeypatch.setattr(
        archive_module, "block_of", lambda packed: read.append(packed) or decode(packed)
    )
    for number in (1, 2, 1, 2, 1, 3, 4, 5, 6, 1):
        assert chain.block_by_number(number).number == number
    assert len(read) == 7


def bytes_kept_for_each_transaction() -> float:
    """Returns the bytes of memory per transaction of an archived block, including the index."""
    chain, count, grown = archived(limits=ChainLimits(blocks=4, states=4)), 100, [0, 0]
    chain.archive = Archive(ScratchBlocks(), cached_bytes=1, run_records=64)
    tracemalloc.start()
    for number in range(46):
        if number == 6:
            gc.collect()
            grown[0] = tracemalloc.get_traced_memory()[0]
        grow(chain, transactions=[payment(number * count + n) for n in range(count)])
    gc.collect()
    grown[1] = tracemalloc.get_traced_memory()[0]
    return (grown[1] - grown[0]) / (40 * count)


def test_memory_does_not_grow_with_the_transactions() -> None:
    code = f"import {__name__} as here; print(here.{bytes_kept_for_each_transaction.__name__}())"
    each = float(
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    )
    assert each < 24, f"{each:.0f} bytes for each transaction, of 1,500 in memory"
