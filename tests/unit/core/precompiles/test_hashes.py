"""Tests SHA-256, RIPEMD-160 and IDENTITY against other libraries, and their price per word."""

import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastevm.core.precompiles.registry import run

GENEROUS = 2**62


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def ripemd160(data: bytes) -> bytes:
    try:
        digest = hashlib.new("ripemd160", data)
    except ValueError:
        pytest.skip("OpenSSL was built without RIPEMD-160")
    return bytes(12) + digest.digest()


CASES = [(0x02, 60, 12, sha256), (0x03, 600, 120, ripemd160), (0x04, 15, 3, bytes)]


@pytest.mark.parametrize(("number", "base", "per_word", "expected"), CASES)
@given(data=st.binary(max_size=300))
@example(data=b"")
@example(data=bytes(64))
def test_digest_and_price(number, base, per_word, expected, data):
    price = base + per_word * ((len(data) + 31) // 32)
    assert run(number, data, GENEROUS) == (True, expected(data), GENEROUS - price)
    assert run(number, data, price) == (True, expected(data), 0)
    assert run(number, data, price - 1) == (False, b"", 0)


@pytest.mark.parametrize(("number", "base", "per_word", "expected"), CASES)
def test_a_megabyte(number, base, per_word, expected):
    data = bytes(range(256)) * 4096
    assert run(number, data, GENEROUS)[1] == expected(data)
