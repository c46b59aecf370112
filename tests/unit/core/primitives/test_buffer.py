"""Tests that a buffer contains the appended bytes in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.testing.primitives import join


@given(st.lists(st.binary(max_size=200), max_size=30), st.integers(0, 5000))
def test_parts_are_joined_in_order(parts: list[bytes], reserve: int) -> None:
    assert join(parts, reserve=reserve) == b"".join(parts)


def test_many_small_parts_grow_the_buffer() -> None:
    parts = [bytes([i % 256]) * (i % 7) for i in range(10_000)]
    assert join(parts) == b"".join(parts)


def test_memory_that_does_not_exist_is_reported() -> None:
    with pytest.raises(MemoryError):
        join([b"x"], reserve=2**62)
