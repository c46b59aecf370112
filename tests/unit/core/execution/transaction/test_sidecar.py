"""Tests the network form of blob transactions, which includes the sidecar."""

import pytest
import rlp

from fastevm.core.execution.transaction.sidecar import BlobSidecar, decode_pooled, encode_pooled
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import TransactionDecodeError

KEY = b"\x07" * 32
BLOB = bytes(range(256)) * 512
TRANSACTION = Transaction.build(
    chain_id=1,
    gas_limit=21_000,
    to=bytes(20),
    max_fee_per_gas=5,
    max_fee_per_blob_gas=1,
    blob_versioned_hashes=[b"\1" + bytes(31)],
).sign(KEY)
BODY = rlp.decode(TRANSACTION.raw[1:])


def wrapped(*parts: object) -> bytes:
    return b"\3" + rlp.encode([BODY, *parts])


@pytest.mark.parametrize("version", [0, 1])
def test_a_network_form_gives_transaction_and_sidecar(version: int) -> None:
    proofs = [bytes([i]) * 48 for i in range(128 if version else 1)]
    head = [b"\1"] if version else []
    raw = wrapped(*head, [BLOB], [b"\2" * 48], proofs)
    transaction, sidecar = decode_pooled(raw)
    assert transaction == TRANSACTION
    assert sidecar == BlobSidecar(version, (BLOB,), (b"\2" * 48,), tuple(proofs))
    assert encode_pooled(transaction, sidecar) == raw


def test_canonical_bytes_have_no_sidecar() -> None:
    assert decode_pooled(TRANSACTION.raw) == (TRANSACTION, None)
    without_blobs = Transaction.build(type=2, gas_limit=1).sign(KEY)
    assert decode_pooled(without_blobs.raw) == (without_blobs, None)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\3",
        b"\3\x80",
        b"\3\xc0",
        wrapped(),
        wrapped([], []),
        wrapped(b"\2", [], [], []),
        wrapped(b"", [], [], []),
        wrapped([], [], [], [], []),
        wrapped([BLOB[1:]], [], []),
        wrapped([], [b"\1" * 47], []),
        wrapped([], [], [b"\1" * 49]),
        wrapped(b"", [], []),
        wrapped([[]], [], []),
        wrapped([], [], []) + b"\0",
        b"\3" + rlp.encode([[b"\1"], [], [], []]),
    ],
)
def test_a_malformed_network_form_does_not_decode(raw: bytes) -> None:
    with pytest.raises(TransactionDecodeError):
        decode_pooled(raw)
