"""Transactions that were foreseen are the same as those that were not."""

import pytest

from fastevm.crypto.secp256k1 import public_key_address
from fastevm.errors import TransactionDecodeError
from fastevm.execution.sidecar import BLOB_TX_TYPE
from fastevm.execution.transaction import Transaction
from fastevm.txpool.predecode import MOST_FORESEEN, MOST_KEPT, Foreseen

KEY = b"\x01" * 32


def raw(nonce: int) -> bytes:
    plain = Transaction.build(chain_id=1, type=2, nonce=nonce, gas_limit=21_000, to=bytes(20))
    return plain.sign(KEY).raw


def test_what_was_foreseen_comes_with_its_sender_and_once() -> None:
    foreseen, group = Foreseen(), [raw(nonce) for nonce in range(9)]
    foreseen.expect(group)
    for one in group:
        first, sidecar = foreseen.take(one)
        again, _ = foreseen.take(one)
        assert first.raw == one and first.sender == public_key_address(KEY) and sidecar is None
        assert again == first and again is not first


def test_one_group_does_not_push_out_another() -> None:
    foreseen = Foreseen()
    foreseen.expect([raw(0), raw(1)])
    foreseen.expect([raw(2)])
    assert len(foreseen) == 3
    foreseen.take(raw(1))
    assert len(foreseen) == 2


def test_what_is_no_transaction_is_said_when_it_is_taken() -> None:
    foreseen = Foreseen()
    foreseen.expect([b"", b"\xc0", bytes([BLOB_TX_TYPE]), raw(0)])
    assert len(foreseen) == 1
    with pytest.raises(TransactionDecodeError):
        foreseen.take(b"\xc0")


def test_no_more_is_kept_than_its_limits() -> None:
    foreseen = Foreseen()
    foreseen.expect([raw(nonce) for nonce in range(MOST_FORESEEN + 1)])
    assert len(foreseen) == MOST_FORESEEN
    for first in range(0, MOST_KEPT, MOST_FORESEEN):
        foreseen.expect([raw(1_000 + first + i) for i in range(MOST_FORESEEN)])
    assert len(foreseen) == MOST_KEPT
