"""Tests Ethash: valid seals of epoch 0, and invalid seals."""

import pytest

from fastevm.core.execution.pow.ethash import light_cache, seal_hash, seal_of, validate_seal
from fastevm.core.execution.types import Header
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.errors import InvalidBlock

SEAL_HASH = bytes.fromhex("100cbec5e5ef82991290d0d93d758f19082e71f234cf479192a8b94df6da6bfe")
NONCE = bytes.fromhex("307692cf71b12f6d")
MIX = bytes.fromhex("e55d02c555a7969361cf74a9ec6211d8c14e4517930a00442f171bdb1698d175")
RESULT = bytes.fromhex("ab9b13423cface72cbec8424221651bc2e384ef0f7a560e038fc68c8d8684829")
CACHE = bytes.fromhex("35ded12eecf2ce2e8da2e15c06d463aae9b84cb2530a00b932e4bbc484cde353")


def sealed(**fields: object) -> Header:
    """Returns a header with a valid seal. With difficulty 1, every nonce is valid."""
    header = Header(number=7, difficulty=1, nonce=NONCE, **fields)
    mix, _ = seal_of(seal_hash(header), NONCE, header.number)
    return replace(header, mix_hash=mix)


def test_the_cache_of_the_first_epoch_is_the_known_one() -> None:
    cache = light_cache(0)
    assert len(cache) == 16_776_896
    assert keccak256(cache) == CACHE


def test_the_next_epoch_has_a_cache_of_the_next_prime_size() -> None:
    assert len(light_cache(1)) == 16_907_456


def test_a_known_nonce_gives_its_known_mix_and_result() -> None:
    assert seal_of(SEAL_HASH, NONCE, 2) == (MIX, RESULT)


def test_the_seal_hash_leaves_out_mix_hash_and_nonce_and_nothing_else() -> None:
    header = sealed(base_fee_per_gas=7)
    other = replace(header, mix_hash=bytes(32), nonce=bytes(8))
    assert seal_hash(header) == seal_hash(other)
    assert seal_hash(header) != seal_hash(replace(header, base_fee_per_gas=8))


def test_a_genuine_seal_is_accepted() -> None:
    validate_seal(sealed())


def test_a_wrong_mix_hash_is_refused() -> None:
    with pytest.raises(InvalidBlock, match="mix_hash"):
        validate_seal(replace(sealed(), mix_hash=bytes(32)))


def test_too_little_work_is_refused() -> None:
    header = Header(number=7, difficulty=2**255, nonce=NONCE)
    mix, _ = seal_of(seal_hash(header), NONCE, header.number)
    with pytest.raises(InvalidBlock, match="nonce"):
        validate_seal(replace(header, mix_hash=mix))


def test_epochs_that_never_were_are_refused() -> None:
    with pytest.raises(ValueError, match="epoch"):
        seal_of(SEAL_HASH, NONCE, 2**63)


def test_a_nonce_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="8-byte nonce"):
        seal_of(SEAL_HASH, b"\0", 2)
