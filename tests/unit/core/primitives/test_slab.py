"""Tests the slab allocator: separate records, reference counts, and freed memory."""

import os
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Event

import pytest

from fastevm.core.primitives.slab import records_in_use
from fastevm.testing.persistent_map import (
    LARGEST_RECORD,
    WordDict,
    allocate,
    references,
    refuse_chunks,
    release,
)

LINE = 64
CHUNK = 2 * 1024 * 1024


@pytest.mark.parametrize("lines", [1, 2, 3, 7, 24, LARGEST_RECORD])
def test_records_are_whole_lines_apart_and_their_counts_survive_their_content(lines: int) -> None:
    wanted = CHUNK // (lines * LINE) + 10  # more records than a chunk has
    records = [allocate(lines) for _ in range(wanted)]
    assert all(record % LINE == 0 for record in records)
    assert all(b - a >= lines * LINE for a, b in pairwise(sorted(records)))
    assert all(references(record, lines) == 1 for record in records)
    for record in records:
        release(record, lines)


def test_a_freed_record_is_handed_out_again() -> None:
    record = allocate(3)
    release(record, 3)
    assert allocate(3) == record
    release(record, 3)


def test_memory_goes_back_but_for_one_chunk_of_a_size() -> None:
    before = records_in_use()
    records, held = before["records"], before["chunk_bytes"]
    taken = [allocate(32) for _ in range(5000)]
    assert records_in_use()["records"] == records + 5000
    assert records_in_use()["chunk_bytes"] > held + 4000 * 32 * LINE
    random.Random(1).shuffle(taken)
    for record in taken:
        release(record, 32)
    assert records_in_use()["records"] == records
    assert records_in_use()["chunk_bytes"] <= held + CHUNK


def test_without_chunks_the_room_in_old_ones_is_used_up_first() -> None:
    first = allocate(5)
    refuse_chunks(True)
    try:
        taken = []
        while record := allocate(5):
            taken.append(record)
        release(taken.pop(), 5)
        taken.append(allocate(5))
        assert taken[-1]
        assert not allocate(5)
    finally:
        refuse_chunks(False)
        for record in (first, *taken):
            release(record, 5)


def churn(seed: int) -> None:
    rng = random.Random(seed)
    held: list[tuple[int, int]] = []
    for _ in range(5000):
        if held and rng.random() < 0.5:
            record, lines = held.pop(rng.randrange(len(held)))
            assert references(record, lines) == 1
            release(record, lines)
        else:
            lines = rng.randint(1, 4)
            held.append((allocate(lines), lines))
    for record, lines in held:
        release(record, lines)


def test_threads_allocate_and_free_side_by_side() -> None:
    before = records_in_use()["records"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(8)))
    assert records_in_use()["records"] == before


def edit_until(stop: Event) -> None:
    version = WordDict()
    while not stop.is_set():
        for key in range(500):
            version.set(key, 1)
        version = WordDict()


def test_a_child_process_allocates_whatever_its_parents_threads_were_at() -> None:
    stop = Event()
    with ThreadPoolExecutor(2) as pool, warnings.catch_warnings():
        # Python warns about os.fork in a process with threads
        warnings.simplefilter("ignore", DeprecationWarning)
        threads = [pool.submit(edit_until, stop) for _ in range(2)]
        try:
            for _ in range(30):
                child = os.fork()
                if child == 0:
                    for lines in range(1, LARGEST_RECORD + 1):
                        release(allocate(lines), lines)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            stop.set()
        for thread in threads:
            thread.result()
