"""Tests that hashes of table keys are seeded and spread, and that tables keep free slots."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.testing.primitives import capacity_for, is_full, table_hashes

NAMES = ["address", "word", "hash"]


def hashes(number: int, seed: int, name: str) -> int:
    return table_hashes(number.to_bytes(32, "big")[12:], number, seed)[name]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shift", [0, 32, 64, 96, 128])
def test_consecutive_keys_spread_over_a_table(name: str, shift: int) -> None:
    seed = random.Random(7).getrandbits(64) | 1
    size = 4096
    buckets = {hashes(i << shift, seed, name) % size for i in range(size)}
    assert len(buckets) > size * 0.6  # a random function fills 63 %


@pytest.mark.parametrize("name", NAMES)
def test_another_seed_gives_another_hash(name: str) -> None:
    assert len({hashes(1, seed, name) for seed in range(1, 2000, 2)}) == 1000


@given(st.integers(0, 10**7))
def test_a_capacity_holds_its_count_without_being_overfull(count: int) -> None:
    capacity = capacity_for(count)
    assert capacity & (capacity - 1) == 0
    assert capacity >= 8
    assert count == 0 or not is_full(count - 1, capacity - 1)
    assert count <= 6 or is_full(count, capacity // 2 - 1)


def test_no_table_is_full() -> None:
    assert is_full(0, 0)
