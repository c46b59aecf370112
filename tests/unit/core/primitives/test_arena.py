"""Tests that an arena gives disjoint, aligned allocations and keeps little memory after a reset."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.testing.primitives import ArenaObject

CHUNK = 4096
KEPT = 1 << 20


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=3000), max_size=40))
def test_allocations_are_aligned_and_keep_their_content(contents: list[bytes]) -> None:
    arena = ArenaObject(CHUNK)
    for _ in range(2):
        places = [arena.alloc(content) for content in contents]
        assert all(place % 16 == 0 for place in places)
        for place, content in zip(places, contents, strict=True):
            assert arena.read(place, len(content)) == content
        spans = sorted((p, p + len(c)) for p, c in zip(places, contents, strict=True) if c)
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        arena.reset()


def test_a_long_run_of_bytes_gets_a_chunk_of_its_own() -> None:
    arena = ArenaObject(CHUNK)
    before = arena.held
    content = bytes(range(256)) * 1000
    place = arena.alloc(content)
    assert arena.read(place, len(content)) == content
    assert len(content) <= arena.held - before < len(content) + 100
    arena.reset()
    assert arena.held == before


def test_a_reset_reuses_the_chunks_it_kept() -> None:
    arena = ArenaObject(CHUNK)
    first = [arena.alloc(bytes(500)) for _ in range(100)]
    held = arena.held
    arena.reset()
    assert [arena.alloc(bytes(500)) for _ in range(100)] == first
    assert arena.held == held


def test_a_reset_gives_back_what_is_beyond_the_limit() -> None:
    arena = ArenaObject(CHUNK)
    for _ in range(3000):
        arena.alloc(bytes(1000))
    assert arena.held > 2 * KEPT
    arena.reset()
    assert arena.held <= KEPT + KEPT // 50


def test_memory_that_does_not_exist_is_reported() -> None:
    arena = ArenaObject(CHUNK)
    assert not arena.alloc_size(2**62)
    assert not arena.alloc_size(2**64 - 1)
    assert arena.alloc_size(16)
