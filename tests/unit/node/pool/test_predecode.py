"""Tests that predecoded transactions equal transactions that the pool decodes."""

import pytest

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.sidecar import BLOB_TX_TYPE
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import TransactionDecodeError
from fastevm.node.pool.predecode import (
    MAX_PREDECODED,
    MAX_PREDECODED_AT_ONCE,
    PredecodedTransactions,
)

KEY = b"\x01" * 32


def raw(nonce: int) -> bytes:
    unsigned = Transaction.build(chain_id=1, type=2, nonce=nonce, gas_limit=21_000, to=bytes(20))
    return unsigned.sign(KEY).raw


def test_a_predecoded_transaction_has_its_sender_and_is_taken_once() -> None:
    cache, group = PredecodedTransactions(), [raw(nonce) for nonce in range(9)]
    cache.predecode(group)
    for item in group:
        first, sidecar = cache.take(item)
        again, _ = cache.take(item)
        assert first.raw == item and first.sender == public_key_address(KEY) and sidecar is None
        assert again == first and again is not first


def test_one_group_does_not_push_out_another() -> None:
    cache = PredecodedTransactions()
    cache.predecode([raw(0), raw(1)])
    cache.predecode([raw(2)])
    assert len(cache) == 3
    cache.take(raw(1))
    assert len(cache) == 2


def test_what_is_no_transaction_is_said_when_it_is_taken() -> None:
    cache = PredecodedTransactions()
    cache.predecode([b"", b"\xc0", bytes([BLOB_TX_TYPE]), raw(0)])
    assert len(cache) == 1
    with pytest.raises(TransactionDecodeError):
        cache.take(b"\xc0")


def test_no_more_is_kept_than_its_limits() -> None:
    cache = PredecodedTransactions()
    cache.predecode([raw(nonce) for nonce in range(MAX_PREDECODED_AT_ONCE + 1)])
    assert len(cache) == MAX_PREDECODED_AT_ONCE
    for first in range(0, MAX_PREDECODED, MAX_PREDECODED_AT_ONCE):
        cache.predecode([raw(1_000 + first + i) for i in range(MAX_PREDECODED_AT_ONCE)])
    assert len(cache) == MAX_PREDECODED
