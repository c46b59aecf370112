"""Tests Keccak-256 against pycryptodome: all lengths around the rate, fast paths, in place."""

import os

import pytest
from Crypto.Hash import keccak
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.primitives import keccak_in_place, keccak_of_nothing

EMPTY = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")


def reference(data: bytes) -> bytes:
    return keccak.new(digest_bits=256, data=data).digest()


def test_the_digest_of_nothing() -> None:
    assert keccak256(b"") == EMPTY
    assert keccak_of_nothing() == EMPTY


def test_every_length_up_to_three_blocks() -> None:
    data = os.urandom(3 * 136 + 1)
    for size in range(len(data) + 1):
        assert keccak256(data[:size]) == reference(data[:size]), size


@given(st.binary(max_size=5000))
def test_any_bytes(data: bytes) -> None:
    assert keccak256(data) == reference(data)


@pytest.mark.parametrize("size", [32, 64])
@given(data=st.data())
def test_the_fast_paths_may_overwrite_their_input(size: int, data: st.DataObject) -> None:
    message = data.draw(st.binary(min_size=size, max_size=size))
    assert keccak_in_place(message) == reference(message)


def test_any_bytes_like_value() -> None:
    assert keccak256(bytearray(b"abc")) == keccak256(memoryview(b"abc")) == reference(b"abc")


@pytest.mark.parametrize("value", ["abc", 3, None])
def test_what_is_not_bytes_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        keccak256(value)  # type: ignore[arg-type]
