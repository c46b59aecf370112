"""Tests that the precompile can compute BLAKE2b, and that its input must have 213 bytes."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.precompiles.registry import run

IV = [
    0x6A09E667F3BCC908,
    0xBB67AE8584CAA73B,
    0x3C6EF372FE94F82B,
    0xA54FF53A5F1D36F1,
    0x510E527FADE682D1,
    0x9B05688C2B3E6C1F,
    0x1F83D9ABFB41BD6B,
    0x5BE0CD19137E2179,
]


def little(n: int) -> bytes:
    return n.to_bytes(8, "little")


def call(rounds: int, state: bytes, block: bytes, offset: int, last: int) -> bytes:
    offsets = little(offset) + bytes(8)
    return rounds.to_bytes(4, "big") + state + block.ljust(128, b"\x00") + offsets + bytes([last])


def blake2b(message: bytes) -> bytes:
    """Computes BLAKE2b with F from the precompile (RFC 7693, section 3.3)."""
    state = little(IV[0] ^ 0x01010040) + b"".join(map(little, IV[1:]))
    blocks = [message[i : i + 128] for i in range(0, len(message), 128)] or [b""]
    for i, block in enumerate(blocks):
        last = i + 1 == len(blocks)
        offset = len(message) if last else 128 * (i + 1)
        ok, state, gas_left = run(0x09, call(12, state, block, offset, last), 12)
        assert ok and gas_left == 0
    return state


@given(st.binary(max_size=400))
def test_twelve_rounds_make_blake2b(message: bytes) -> None:
    assert blake2b(message) == hashlib.blake2b(message).digest()


def test_the_gas_is_the_number_of_rounds() -> None:
    assert run(0x09, call(1000, bytes(64), b"", 0, 1), 1500)[2] == 500
    assert run(0x09, call(2**32 - 1, bytes(64), b"", 0, 1), 2**32 - 2) == (False, b"", 0)


@pytest.mark.parametrize("size", [0, 1, 212, 214, 426])
def test_another_length_is_invalid(size: int) -> None:
    data = call(0, bytes(64), b"", 0, 1).ljust(size, b"\x00")[:size]
    assert run(0x09, data, 100) == (False, b"", 0)


@pytest.mark.parametrize("flag", [2, 128, 255])
def test_another_flag_is_invalid(flag: int) -> None:
    assert run(0x09, call(0, bytes(64), b"", 0, flag), 100) == (False, b"", 0)
