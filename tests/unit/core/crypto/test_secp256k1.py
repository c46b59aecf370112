"""Tests recovery and signing against eth-keys, and against coincurve's Python API."""

from concurrent.futures import ThreadPoolExecutor

import coincurve
import pytest
from eth_keys.main import KeyAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.crypto import secp256k1

ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
KEY = bytes.fromhex("4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318")
HASH = bytes(range(32))

private_keys = st.integers(1, ORDER - 1).map(lambda n: n.to_bytes(32, "big"))
hashes = st.binary(min_size=32, max_size=32)


@settings(max_examples=30)
@given(private_keys, hashes)
def test_who_signed_is_recovered(private_key: bytes, message_hash: bytes) -> None:
    parity, r, s = secp256k1.sign(message_hash, private_key)
    expected = KeyAPI.PrivateKey(private_key).public_key
    assert secp256k1.recover(message_hash, parity, r, s) == expected.to_bytes()
    assert secp256k1.recover_signer(message_hash, parity, r, s) == expected.to_canonical_address()


@settings(max_examples=30)
@given(private_keys, hashes)
def test_a_signature_is_the_deterministic_one_with_low_s(
    private_key: bytes, message_hash: bytes
) -> None:
    signature = coincurve.PrivateKey(private_key).sign_recoverable(message_hash, hasher=None)
    parity, r, s = secp256k1.sign(message_hash, private_key)
    assert r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([parity]) == signature
    assert s <= ORDER // 2


@settings(max_examples=20)
@given(private_keys)
def test_keys_and_addresses(private_key: bytes) -> None:
    expected = KeyAPI.PrivateKey(private_key).public_key
    assert secp256k1.public_key(private_key) == expected.to_bytes()
    assert secp256k1.public_key_address(private_key) == expected.to_canonical_address()
    assert secp256k1.public_key_to_address(expected.to_bytes()) == expected.to_canonical_address()


def test_a_high_s_recovers_the_same_key() -> None:
    parity, r, s = secp256k1.sign(HASH, KEY)
    assert secp256k1.recover(HASH, 1 - parity, r, ORDER - s) == secp256k1.public_key(KEY)


@pytest.mark.parametrize(
    ("parity", "r", "s"),
    [
        (0, 0, 1),
        (0, 1, 0),
        (0, ORDER, 1),
        (0, 1, ORDER),
        (0, 2**256 - 1, 2**256 - 1),
        (2, 1, 1),
        (27, 1, 1),
        (-1, 1, 1),
        (0, 5, 1),  # no point of the curve has this x
    ],
)
def test_a_signature_that_cannot_be_is_refused(parity: int, r: int, s: int) -> None:
    with pytest.raises(ValueError, match="no public key"):
        secp256k1.recover(HASH, parity, r, s)


@pytest.mark.parametrize(("r", "s"), [(-1, 1), (1, 2**256)])
def test_numbers_over_256_bits_are_refused(r: int, s: int) -> None:
    with pytest.raises(ValueError, match="256-bit"):
        secp256k1.recover(HASH, 0, r, s)


@pytest.mark.parametrize("private_key", [bytes(32), ORDER.to_bytes(32, "big"), b"", bytes(31)])
def test_a_private_key_out_of_range_is_refused(private_key: bytes) -> None:
    with pytest.raises(ValueError):
        secp256k1.sign(HASH, private_key)
    with pytest.raises(ValueError):
        secp256k1.public_key_address(private_key)


@pytest.mark.parametrize("message_hash", [b"", bytes(31), bytes(33)])
def test_a_hash_of_another_size_is_refused(message_hash: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        secp256k1.sign(message_hash, KEY)
    with pytest.raises(ValueError, match="32 bytes"):
        secp256k1.recover(message_hash, 0, 1, 1)


def test_threads_share_the_library() -> None:
    parity, r, s = secp256k1.sign(HASH, KEY)

    def recover_many(_: int) -> set[bytes]:
        return {secp256k1.recover_signer(HASH, parity, r, s) for _ in range(50)}

    with ThreadPoolExecutor(4) as pool:
        found = set().union(*pool.map(recover_many, range(8)))
    assert found == {secp256k1.public_key_address(KEY)}
