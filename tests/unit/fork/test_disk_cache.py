"""Tests that the disk cache is shared, durable and bounded, and that its errors stop no fork."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastevm.core.state.source import Found, RemoteAccount
from fastevm.fork.disk_cache import (
    MAX_SLOTS_OF_ACCOUNT,
    CachedBlock,
    DiskCache,
    cache_folder,
)
from fastevm.fork.pinned_block import PinnedBlock
from tests.max_wait import MAX_WAIT

from .fake_endpoint import block

ALICE, TOKEN = b"\xa1" * 20, b"\x70" * 20
VALUES = Found(
    {ALICE: RemoteAccount(2**256 - 1, 2**64 - 1), TOKEN: RemoteAccount(0, 1, b"\x60" * 300)},
    {(TOKEN, 0): 0, (TOKEN, 2**256 - 1): 2**256 - 1, (ALICE, 5): 6},
    {9: b"\x09" * 32},
)


def pinned(number: int, branch: int = 0) -> PinnedBlock:
    return PinnedBlock.read(block(number, branch))


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[DiskCache]:
    opened = DiskCache(tmp_path)
    yield opened
    opened.close()


def key(cache: DiskCache, number: int, branch: int = 0, chain: str = "1") -> CachedBlock:
    found = cache.block(chain, pinned(number, branch))
    assert found is not None
    return found


def everything(cache: DiskCache, at: CachedBlock) -> Found:
    return cache.get(at, VALUES.accounts, VALUES.slots, VALUES.block_hashes)


def test_values_come_back_from_the_file(cache: DiskCache, tmp_path: Path) -> None:
    cache.put(key(cache, 10), VALUES)
    cache.close()
    again = DiskCache(tmp_path)
    assert everything(again, key(again, 10)) == VALUES
    again.close()


def test_an_account_brings_all_its_slots(cache: DiskCache) -> None:
    cache.put(key(cache, 10), VALUES)
    found = cache.get(key(cache, 10), [TOKEN], [])
    assert found.slots.keys() == {(TOKEN, 0), (TOKEN, 2**256 - 1)}


def test_of_an_account_that_was_given_only_the_slots_asked_for_come(cache: DiskCache) -> None:
    cache.put(key(cache, 10), VALUES)
    found = cache.get(key(cache, 10), [ALICE], [(TOKEN, 0), (TOKEN, 7)], given={TOKEN})
    assert found.slots == {(TOKEN, 0): 0, (ALICE, 5): 6}


@pytest.mark.parametrize("other", [{"number": 11}, {"branch": 1}, {"chain": "31337:00"}])
def test_values_belong_to_one_block_of_one_chain(cache: DiskCache, other: dict[str, int]) -> None:
    cache.put(key(cache, 10), VALUES)
    assert everything(cache, key(cache, **{"number": 10, **other})) == Found()


def test_a_code_is_written_once_for_all_blocks(cache: DiskCache) -> None:
    for number in range(5):
        cache.put(key(cache, number), VALUES)
    assert cache.stats()["code"] == 1
    assert cache.codes(key(cache, 99), [TOKEN, ALICE]) == {TOKEN: b"\x60" * 300}
    assert cache.codes(key(cache, 99, chain="2"), [TOKEN]) == {}


def test_a_block_is_found_by_hash_by_number_or_as_the_newest(cache: DiskCache) -> None:
    for number in (10, 12, 11):
        key(cache, number)
    by_hash = cache.find_block("1", digest=pinned(11).hash)
    assert by_hash == pinned(11)
    assert by_hash is not None
    assert by_hash.header == block(11)
    assert cache.find_block("1", number=10) == pinned(10)
    assert cache.find_block("1") == pinned(12)
    assert cache.find_block("2") is cache.find_block("1", number=13) is None


def test_more_slots_than_are_read_at_once_are_found_one_by_one(cache: DiskCache) -> None:
    many = {(TOKEN, slot): slot for slot in range(MAX_SLOTS_OF_ACCOUNT + 500)}
    cache.put(key(cache, 10), Found(slots=many))
    last = (TOKEN, MAX_SLOTS_OF_ACCOUNT + 499)
    assert cache.get(key(cache, 10), [], [last, (TOKEN, 3)]).slots[last] == last[1]


def test_the_blocks_used_longest_ago_are_deleted_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    slots = {(TOKEN, slot): 2**255 for slot in range(3_000)}
    for number in (1, 2, 3):
        cache.put(key(cache, number), Found(slots=slots))
    key(cache, 1)  # marks the block as recently used
    before = cache.stats()["bytes"]
    assert cache.evict(before * 5 // 6) == 1
    assert cache.stats()["bytes"] < before * 5 // 6
    assert cache.path.stat().st_size < before
    assert not cache.get(key(cache, 2), [], [(TOKEN, 1)]).slots
    assert cache.get(key(cache, 1), [], [(TOKEN, 1)]).slots
    cache.close()


def test_the_file_stays_below_its_limit(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=2_000_000)
    slots = {(os.urandom(20), slot): 2**255 for slot in range(5_000)}
    for number in range(20):
        cache.put(key(cache, number), Found(slots=slots))
    # 10 MB were written; the size is only checked now and then
    assert cache.stats()["bytes"] < 5_000_000
    assert cache.get(key(cache, 19), [], [next(iter(slots))]).slots
    cache.close()


def test_an_export_can_be_imported_elsewhere(cache: DiskCache, tmp_path: Path) -> None:
    cache.put(key(cache, 10), VALUES)
    cache.put_response(key(cache, 10), b"request", {"a": [1]})
    cache.export(tmp_path / "out")
    with pytest.raises(FileExistsError):
        cache.export(tmp_path / "out")
    other = DiskCache(tmp_path / "other")
    other.put(key(other, 3), VALUES)  # so that the ids of blocks in both files differ
    assert other.import_from(tmp_path / "out") == 1
    assert other.import_from(tmp_path / "out") == 0
    assert everything(other, key(other, 10)) == VALUES
    assert other.response(key(other, 10), b"request") == {"a": [1]}
    (tmp_path / "text").write_text("text")
    with pytest.raises(ValueError, match="not an exported cache"):
        other.import_from(tmp_path / "text")
    other.close()


def test_clearing_may_be_for_one_chain(cache: DiskCache) -> None:
    for chain in ("1", "10", "31337:00"):
        cache.put(key(cache, 10, chain=chain), VALUES)
    assert cache.clear(1) == 1
    assert cache.clear(31337) == 1
    assert everything(cache, key(cache, 10, chain="10")) == VALUES
    assert cache.clear() == 1
    assert cache.stats()["slot"] == cache.stats()["code"] == 0


@pytest.mark.parametrize("kind", ["garbage", "folder"])
def test_a_file_that_is_none_is_reported_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    path = tmp_path / "fork.sqlite"
    if kind == "garbage":
        path.write_bytes(b"not a database" * 1000)
    else:
        path.mkdir()
    cache = DiskCache(tmp_path)
    assert cache.block("1", pinned(1)) is None
    cache.put(CachedBlock(1, 1), VALUES)
    assert everything(cache, CachedBlock(1, 1)) == Found()
    assert len(caplog.records) == 1
    assert cache.broken


def test_many_threads_write_and_read_at_once(cache: DiskCache) -> None:
    at = key(cache, 10)

    def work(number: int) -> None:
        for slot in range(50):
            cache.put(at, Found(slots={(bytes([number]) * 20, slot): slot}))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.stats()["slot"] == 400


WRITER = """
import sys
from pathlib import Path
from fastevm.fork.disk_cache import DiskCache
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.core.state.source import Found
cache = DiskCache(Path(sys.argv[1]))
header = {"number": "0x1", "hash": "0x" + "11" * 32, "parentHash": "0x" + "22" * 32}
at = cache.block("1", PinnedBlock.read(header))
for slot in range(1_000_000):
    cache.put(at, Found(slots={(bytes(20), slot): slot * 3 + 1}))
    print(slot, flush=True)
"""


def test_what_a_killed_process_wrote_is_there(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        reported = 0
        ends = time.monotonic() + MAX_WAIT
        while reported < 100 and time.monotonic() < ends:
            reported = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    cache = DiskCache(tmp_path)
    at = cache.block("1", PinnedBlock(1, b"\x11" * 32, {}))
    assert at is not None
    found = cache.get(at, [bytes(20)], []).slots
    assert len(found) > reported
    assert all(value == slot * 3 + 1 for (_, slot), value in found.items())
    cache.close()


def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FASTEVM_FORK_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("FASTEVM_FORK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fastevm" / "fork"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "fastevm" / "fork"
