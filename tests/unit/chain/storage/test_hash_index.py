"""Tests that the hash index finds every entry, with few files and little memory."""

import os
import tracemalloc
from hashlib import sha256

import pytest

from fastevm.chain.storage import hash_index
from fastevm.chain.storage.hash_index import HashIndex


def key(number: int) -> bytes:
    return sha256(number.to_bytes(8, "big")).digest()


def filled(count: int, run_records: int) -> HashIndex:
    index = HashIndex(run_records=run_records)
    for number in range(count):
        index.add(key(number), number)
        index.flush()
    index.settle()
    return index


@pytest.mark.parametrize("count", [0, 1, 7, 8, 1_000, 5_003])
def test_all_that_was_added_is_found(count: int) -> None:
    index = filled(count, run_records=8)
    assert [list(index.find(key(number))) for number in range(count)] == [[n] for n in range(count)]
    assert list(index.find(key(count))) == []


def test_runs_are_merged_into_few() -> None:
    assert filled(20_000, run_records=16).run_count <= 12


def test_the_newest_of_one_hash_comes_first() -> None:
    index = HashIndex(run_records=2)
    for value in (3, 1, 2):
        index.add(key(0), value)
        index.add(key(10 + value), value)
        index.flush()
    index.add(key(0), 9)
    found = list(index.find(key(0)))
    assert found[0] == 9
    assert sorted(found) == [1, 2, 3, 9]


def test_hashes_that_begin_alike_are_all_candidates() -> None:
    """Every entry is found, even if hashes with the same first 8 bytes fill more than a page."""
    count = 3 * hash_index.PAGE_BYTES // hash_index.RECORD_SIZE
    index = HashIndex(run_records=count)
    alike = [bytes(8) + key(number)[8:] for number in range(count - 2)]
    for number, item in enumerate([b"\0" * 7 + b"\1" + bytes(24), *alike, b"\xff" * 32]):
        index.add(item, number)
    index.flush()
    assert sorted(index.find(bytes(32))) == list(range(1, count - 1))


def test_what_cannot_be_written_is_found_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    index = HashIndex(run_records=2)
    index.add(key(0), 0)
    index.add(key(1), 1)

    def full(*args: object) -> int:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="no space"):
            index.flush()
        assert list(index.find(key(1))) == [1]
    index.flush()
    assert index.run_count == 1
    assert list(index.find(key(1))) == [1]


def test_a_merge_that_fails_leaves_the_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*args: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(hash_index, "_merged", broken)
        index = filled(40, run_records=8)
    assert index.run_count == 5
    assert "stays in many files" in caplog.text
    assert [list(index.find(key(number))) for number in range(40)] == [[n] for n in range(40)]


def test_a_hash_costs_hardly_any_memory() -> None:
    count = 20_000
    tracemalloc.start()
    try:
        index = filled(count, run_records=32)
        # ignores allocations by threads of earlier tests
        of_storage = tracemalloc.Filter(True, "*/chain/storage/*")
        traces = tracemalloc.take_snapshot().filter_traces([of_storage]).traces
        assert 0 < sum(trace.size for trace in traces) < 6 * count
    finally:
        tracemalloc.stop()
    assert list(index.find(key(count // 2))) == [count // 2]
