"""Slabs: records apart from each other, counts apart from the records, memory given back."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

from fastevm.primitives.persistent_doors import (
    LARGEST_RECORD,
    allocate,
    in_use,
    references,
    refuse_chunks,
    release,
)

LINE = 64
CHUNK = 2 * 1024 * 1024


@pytest.mark.parametrize("lines", [1, 2, 3, 7, 24, LARGEST_RECORD])
def test_records_are_whole_lines_apart_and_their_counts_survive_their_content(lines: int) -> None:
    wanted = CHUNK // (lines * LINE) + 10  # more than one chunk
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
    before = in_use()
    records, held = before["records"], before["chunk_bytes"]
    taken = [allocate(32) for _ in range(5000)]
    assert in_use()["records"] == records + 5000
    assert in_use()["chunk_bytes"] > held + 4000 * 32 * LINE
    random.Random(1).shuffle(taken)
    for record in taken:
        release(record, 32)
    assert in_use()["records"] == records
    assert in_use()["chunk_bytes"] <= held + CHUNK


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
    before = in_use()["records"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(8)))
    assert in_use()["records"] == before
