"""Tests that point evaluation accepts only proofs for this commitment, point and value."""

import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import ckzg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from py_ecc.bls.g2_primitives import G1_to_pubkey, pubkey_to_G1
from py_ecc.optimized_bls12_381 import G1, add, curve_order, multiply

from fastevm.core.precompiles.registry import run

ORDER = curve_order
COST = 50_000
ANSWER = (4096).to_bytes(32, "big") + ORDER.to_bytes(32, "big")
INVALID = (False, b"", 0)
INFINITY = b"\xc0" + bytes(47)

# The point tau G1 of the KZG ceremony. With it, tests can commit to polynomials of degree 1.
TAU_G1 = bytes.fromhex(
    "ad3eb50121139aa34db1d545093ac9374ab7bca2c0f3bf28e27c8dcd8fc7cb42"
    "d25926fc0c97b336e9f0fb35e5a04c81"
)

scalars = st.one_of(st.sampled_from([0, 1, ORDER - 1]), st.integers(0, ORDER - 1))
few = settings(max_examples=10)


def word(n: int) -> bytes:
    return n.to_bytes(32, "big")


def point(constant: int, slope: int) -> bytes:
    """Returns the commitment to constant + slope x."""
    tau = multiply(pubkey_to_G1(TAU_G1), slope)
    return bytes(G1_to_pubkey(add(multiply(G1, constant), tau)))


def call(commitment: bytes, z: int, y: int, proof: bytes) -> bytes:
    versioned = b"\x01" + hashlib.sha256(commitment).digest()[1:]
    return versioned + word(z) + word(y) + commitment + proof


def evaluate(data: bytes) -> tuple[bool, bytes, int]:
    return run(0x0A, data, COST)


@few
@given(scalars, scalars, scalars)
@example(0, 0, 0)
@example(5, 0, 7)
@example(0, 1, 0)
def test_a_line_has_its_values_and_no_others(constant: int, slope: int, z: int) -> None:
    y = (constant + slope * z) % ORDER
    commitment, proof = point(constant, slope), point(slope, 0)
    assert evaluate(call(commitment, z, y, proof)) == (True, ANSWER, 0)
    assert evaluate(call(commitment, z, (y + 1) % ORDER, proof)) == INVALID
    assert evaluate(call(commitment, z, y, point(slope + 1, 0))) == INVALID


def test_another_point_fails_unless_the_line_is_flat() -> None:
    assert evaluate(call(point(3, 2), 5, 13, point(2, 0)))[0]
    assert evaluate(call(point(3, 2), 6, 13, point(2, 0))) == INVALID
    assert evaluate(call(point(3, 0), 6, 3, INFINITY))[0]


@pytest.mark.parametrize("value", [ORDER, ORDER + 5, 2**256 - 1])
def test_numbers_are_below_the_order(value: int) -> None:
    assert evaluate(call(point(3, 0), value, 3, INFINITY)) == INVALID
    assert evaluate(call(point(3, 0), 0, value, INFINITY)) == INVALID


def test_the_hash_is_of_the_commitment_and_has_its_version() -> None:
    good = call(point(3, 0), 5, 3, INFINITY)
    assert evaluate(good)[0]
    for i in (0, 1, 31):
        assert evaluate(good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :]) == INVALID


@pytest.mark.parametrize(
    "bad",
    [
        bytes(48),
        b"\xff" * 48,
        b"\xc0" + bytes(46) + b"\x01",
        b"\xe0" + bytes(47),
        b"\x80" + bytes(46) + b"\x04",
        b"\x80" + bytes(47),
        INFINITY[:1] + b"\x01" + bytes(46),
    ],
)
def test_what_is_no_point_of_the_group_is_refused(bad: bytes) -> None:
    assert evaluate(call(bad, 0, 0, INFINITY)) == INVALID
    assert evaluate(call(INFINITY, 0, 0, bad)) == INVALID


@pytest.mark.parametrize("size", [0, 1, 191, 193])
def test_another_length_is_refused(size: int) -> None:
    assert evaluate(call(INFINITY, 0, 0, INFINITY).ljust(size, b"\x00")[:size]) == INVALID


def test_gas() -> None:
    data = call(INFINITY, 0, 0, INFINITY)
    assert run(0x0A, data, COST + 7) == (True, ANSWER, 7)
    assert run(0x0A, data, COST - 1) == INVALID


@cache
def trusted_setup() -> object:
    spec = find_spec("eth_account")
    assert spec is not None and spec.origin is not None
    found = list(Path(spec.origin).parent.rglob("kzg_trusted_setup.txt"))
    if not found:
        pytest.skip("eth-account carries no trusted setup")
    return ckzg.load_trusted_setup(str(found[0]), 0)


def test_proofs_of_ckzg_hold() -> None:
    setup = trusted_setup()
    blob = b"".join(word(pow(3, i, ORDER)) for i in range(4096))
    commitment = ckzg.blob_to_kzg_commitment(blob, setup)
    for z in (0, 1, 12345678901234567890):
        proof, y = ckzg.compute_kzg_proof(blob, word(z), setup)
        value = int.from_bytes(y, "big")
        assert evaluate(call(commitment, z, value, proof)) == (True, ANSWER, 0)
        assert evaluate(call(commitment, z, value ^ 1, proof)) == INVALID
