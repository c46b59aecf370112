"""Tests log blooms against eth-bloom, and compiled queries against a test of each value."""

from dataclasses import dataclass

import pytest
from eth_bloom.bloom import BloomFilter
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives.bloom import BloomQuery, bloom_of, merge_blooms


@dataclass(frozen=True)
class Log:
    address: bytes
    topics: tuple[bytes, ...]


values = st.integers(0, 30).map(lambda n: n.to_bytes(20, "big"))
logs = st.lists(st.builds(Log, values, st.lists(values, max_size=4).map(tuple)), max_size=6)


def reference(entries: list[Log]) -> BloomFilter:
    bloom = BloomFilter()
    for log in entries:
        bloom.extend([log.address, *log.topics])
    return bloom


def packed(bloom: BloomFilter) -> bytes:
    return int(bloom).to_bytes(256, "big")


@given(logs)
def test_the_bloom_of_logs(entries: list[Log]) -> None:
    assert bloom_of(entries) == packed(reference(entries))


@given(logs, logs)
def test_merged_blooms_hold_both(first: list[Log], second: list[Log]) -> None:
    assert merge_blooms([bloom_of(first), bloom_of(second)]) == bloom_of(first + second)
    assert merge_blooms([]) == bytes(256)


positions = st.lists(st.lists(values, max_size=3), max_size=4)


@given(st.lists(logs, max_size=8), positions)
def test_a_query_asks_one_alternative_of_each_position(
    blocks: list[list[Log]], wanted: list[list[bytes]]
) -> None:
    query = BloomQuery(wanted)
    blooms = [reference(entries) for entries in blocks]
    expected = [all(not p or any(v in bloom for v in p) for p in wanted) for bloom in blooms]
    assert [query.matches(packed(bloom)) for bloom in blooms] == expected
    hits = query.scan(b"".join(packed(bloom) for bloom in blooms))
    assert hits == [i for i, match in enumerate(expected) if match]


def test_a_query_for_anything_matches_everything() -> None:
    assert BloomQuery([]).scan(bytes(512)) == [0, 1]
    assert BloomQuery([[], []]).matches(bytes(256))


def test_a_query_for_something_does_not_match_an_empty_bloom() -> None:
    assert BloomQuery([[b"x"]]).scan(bytes(512)) == []


@pytest.mark.parametrize("size", [0, 255, 257])
def test_a_bloom_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="256 bytes"):
        BloomQuery([]).matches(bytes(size))
    with pytest.raises(ValueError, match="256 bytes"):
        merge_blooms([bytes(size)])


def test_blooms_of_uneven_size_are_refused() -> None:
    with pytest.raises(ValueError):
        BloomQuery([]).scan(bytes(300))


def test_a_value_that_is_not_bytes_is_refused() -> None:
    with pytest.raises(TypeError):
        BloomQuery([["0x00"]])  # type: ignore[list-item]
