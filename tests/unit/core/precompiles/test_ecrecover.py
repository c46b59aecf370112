"""Tests that ECRECOVER finds signers, and returns nothing for invalid signatures."""

from collections.abc import Mapping, Sequence

import pytest
from coincurve import PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.precompiles.ecrecover import (
    forget_impersonated_signatures,
    impersonate_signature,
)
from fastevm.core.precompiles.registry import run
from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.secp256k1 import compare, use_lanes

from .conftest import Vector

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
COST = 3000


def word(n: int) -> bytes:
    return n.to_bytes(32, "big")


def recover(digest: bytes, v: int, r: int, s: int) -> bytes:
    ok, output, gas_left = run(0x01, digest + word(v) + word(r) + word(s), COST)
    assert ok and gas_left == 0
    return output


def sign(secret: int, digest: bytes) -> tuple[int, int, int, bytes]:
    key = PrivateKey.from_int(secret)
    signature = key.sign_recoverable(digest, hasher=None)
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:64], "big")
    signer = keccak256(key.public_key.format(compressed=False)[1:])[12:]
    return 27 + signature[64], r, s, bytes(12) + signer


@settings(max_examples=50)
@given(secret=st.integers(1, ORDER - 1), digest=st.binary(min_size=32, max_size=32))
def test_the_signer_is_found(secret: int, digest: bytes) -> None:
    v, r, s, signer = sign(secret, digest)
    assert recover(digest, v, r, s) == signer
    assert recover(digest, 27 + 28 - v, r, s) != signer


@settings(max_examples=20)
@given(secret=st.integers(1, ORDER - 1), digest=st.binary(min_size=32, max_size=32))
def test_a_high_s_is_as_good(secret: int, digest: bytes) -> None:
    v, r, s, signer = sign(secret, digest)
    assert recover(digest, 27 + 28 - v, r, ORDER - s) == signer


@pytest.mark.parametrize("v", [0, 1, 26, 29, 255, 256 + 27, 2**64 + 27, 27 << 248, 2**256 - 1])
def test_v_is_27_or_28_as_a_whole_word(v: int) -> None:
    _, r, s, _ = sign(7, bytes(32))
    assert recover(bytes(32), v, r, s) == b""


@pytest.mark.parametrize("value", [0, ORDER, ORDER + 1, 2**256 - 1])
def test_r_and_s_are_in_range(value: int) -> None:
    v, r, s, _ = sign(7, bytes(32))
    assert recover(bytes(32), v, value, s) == b""
    assert recover(bytes(32), v, r, value) == b""


def test_short_input_is_padded_and_long_input_cut() -> None:
    digest = keccak256(b"")
    v, r, s, signer = sign(7, digest)
    data = digest + word(v) + word(r) + word(s)
    assert run(0x01, data + b"\xff" * 50, COST) == (True, signer, 0)
    assert run(0x01, data[:-1], COST)[1] == recover(digest, v, r, s & ~0xFF)
    assert run(0x01, b"", COST) == (True, b"", 0)


def test_known_signatures_in_lanes(vectors: Mapping[str, Sequence[Vector]]) -> None:
    signatures = []
    for vector in vectors["ecRecover"]:
        data = vector.data.ljust(128, b"\0")
        z, v, r, s = (int.from_bytes(data[at : at + 32], "big") for at in range(0, 128, 32))
        if v in (27, 28) and 0 < r < ORDER and 0 < s < ORDER:
            signatures.append((z, v - 27, r, s))
    try:
        assert signatures and use_lanes("portable") == "open"
        found = compare(signatures)
    finally:
        use_lanes("processor")
    assert found["wrong"] == found["left"] == 0 and found["agreed"]


def test_an_impersonated_signature_is_its_accounts_whatever_is_signed() -> None:
    first, second = b"\xa1" * 20, b"\xa2" * 20
    v, r, s, signer = sign(7, b"\x01" * 32)
    signature = word(r) + word(s) + bytes([v])
    try:
        impersonate_signature(signature, first)
        assert (
            recover(b"\x01" * 32, v, r, s) == recover(b"\x02" * 32, v, r, s) == word(0)[:12] + first
        )
        assert recover(b"\x01" * 32, v + 10, r, s) == recover(b"\x01" * 32, v, r, ORDER) == b""
        impersonate_signature(signature, second)
        impersonate_signature(bytes([5]) * 65, first)
        assert recover(b"\x01" * 32, v, r, s)[12:] == second
        assert recover(bytes(32), 5, *(2 * [int.from_bytes(bytes([5]) * 32, "big")]))[12:] == first
        for _ in range(1024 - 3):
            impersonate_signature(bytes(65), first)
        with pytest.raises(
            ValueError, match="1024 signatures are impersonated, which is the limit"
        ):
            impersonate_signature(bytes(65), first)
    finally:
        forget_impersonated_signatures()
    assert recover(b"\x01" * 32, v, r, s) == signer


@pytest.mark.parametrize(("signature", "signer"), [(64, 20), (66, 20), (65, 19), (65, 32)])
def test_signatures_and_addresses_of_other_lengths_are_refused(signature: int, signer: int) -> None:
    with pytest.raises(ValueError, match="expected 65 and 20 bytes"):
        impersonate_signature(bytes(signature), bytes(signer))
