"""Tests that P256VERIFY accepts valid signatures and returns nothing for all other input."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.precompiles.registry import run

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
PRIME = 2**256 - 2**224 + 2**192 + 2**96 - 1
COST = 6900
YES = (1).to_bytes(32, "big")


def word(n: int) -> bytes:
    return n.to_bytes(32, "big")


def signed(secret: int, digest: bytes) -> list[int]:
    """Returns the five words of a call: hash, r, s, x, y."""
    key = derive_private_key(secret, SECP256R1())
    r, s = decode_dss_signature(key.sign(digest, ECDSA(Prehashed(SHA256()))))
    public = key.public_key().public_numbers()
    return [int.from_bytes(digest, "big"), r, s, public.x, public.y]


def verify(words: list[int]) -> bytes:
    ok, output, gas_left = run(0x12, b"".join(map(word, words)), COST)
    assert ok and gas_left == 0
    return output


@settings(max_examples=25)
@given(st.integers(1, ORDER - 1), st.binary(min_size=32, max_size=32), st.integers(0, 4))
def test_a_signature_holds_and_a_changed_one_does_not(
    secret: int, digest: bytes, changed: int
) -> None:
    words = signed(secret, digest)
    assert verify(words) == YES
    assert verify([*words[:2], ORDER - words[2], *words[3:]]) == YES
    words[changed] ^= 1
    assert verify(words) == b""


@pytest.mark.parametrize("position", [1, 2])
@pytest.mark.parametrize("value", [0, ORDER, ORDER + 1, 2**256 - 1])
def test_r_and_s_are_in_range(position: int, value: int) -> None:
    words = signed(5, bytes(32))
    words[position] = value
    assert verify(words) == b""


@pytest.mark.parametrize(
    "point", [(0, 0), (PRIME, 1), (1, PRIME), (2**256 - 1, 2**256 - 1), (5, 1)]
)
def test_the_key_is_a_point_of_the_curve(point: tuple[int, int]) -> None:
    assert verify([*signed(5, bytes(32))[:3], *point]) == b""


def test_a_coordinate_is_not_taken_modulo_the_prime() -> None:
    # 5 is the x of a point, and 5 + PRIME fits into a word.
    y = pow(
        5**3 - 3 * 5 + 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B,
        (PRIME + 1) // 4,
        PRIME,
    )
    assert verify([*signed(5, bytes(32))[:3], 5 + PRIME, y]) == b""


@pytest.mark.parametrize("size", [0, 1, 159, 161, 320])
def test_another_length_has_no_answer_but_costs_the_same(size: int) -> None:
    data = b"".join(map(word, signed(5, bytes(32)))).ljust(size, b"\x00")[:size]
    assert run(0x12, data, COST + 1) == (True, b"", 1)
