"""The network form of blob transactions, with blobs, commitments and proofs (EIP-4844)."""

from collections.abc import Sequence

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives import rlp
from fastevm.errors import TransactionDecodeError

BLOB_TX_TYPE = 3
BLOB_SIZE = 131072
COMMITMENT_SIZE = 48
PROOF_SIZE = 48
CELL_PROOF_VERSION = 1


class BlobSidecar(Struct, frozen=True):
    """The parts of a blob transaction that blocks do not contain: blobs, commitments and proofs.

    ``version`` 0: one proof per blob (EIP-4844). 1: the cell proofs of each blob (EIP-7594). Only
    sizes are checked here; the pool checks counts, hashes and proofs.
    """

    version: int
    blobs: tuple[bytes, ...]
    commitments: tuple[bytes, ...]
    proofs: tuple[bytes, ...]


def decode_pooled(raw: bytes) -> tuple[Transaction, BlobSidecar | None]:
    """Decodes a transaction from its pooled encoding, or from its canonical encoding.

    The sidecar is None for a canonical encoding, which is accepted for every type. Raises
    `TransactionDecodeError`.
    """
    if not raw or raw[0] != BLOB_TX_TYPE:
        return Transaction.decode(raw), None
    try:
        wrapper = rlp.decode(raw[1:])
    except ValueError as error:
        raise TransactionDecodeError(f"envelope: {error}") from None
    if not isinstance(wrapper, list) or not wrapper or not isinstance(wrapper[0], list):
        return Transaction.decode(raw), None
    body, *parts = wrapper
    # Decoding is strict, so encoding restores the same bytes.
    transaction = Transaction.decode(bytes([BLOB_TX_TYPE]) + rlp.encode(body))
    return transaction, _sidecar(parts)


def encode_pooled(transaction: Transaction, sidecar: BlobSidecar) -> bytes:
    """Returns the pooled encoding of a blob transaction, as eth_sendRawTransaction accepts it."""
    body = rlp.decode(transaction.raw[1:])
    version = [bytes([sidecar.version])] if sidecar.version else []
    parts = [list(sidecar.blobs), list(sidecar.commitments), list(sidecar.proofs)]
    return bytes([BLOB_TX_TYPE]) + rlp.encode([body, *version, *parts])


def _sidecar(parts: Sequence[object]) -> BlobSidecar:
    version = 0
    if len(parts) == 4:
        version = CELL_PROOF_VERSION
        if parts[0] != bytes([CELL_PROOF_VERSION]):
            raise TransactionDecodeError("sidecar: expected version 1")
        parts = parts[1:]
    if len(parts) != 3:
        raise TransactionDecodeError("sidecar: expected blobs, commitments and proofs")
    blobs, commitments, proofs = parts
    return BlobSidecar(
        version,
        _parts("blobs", blobs, BLOB_SIZE),
        _parts("commitments", commitments, COMMITMENT_SIZE),
        _parts("proofs", proofs, PROOF_SIZE),
    )


def _parts(name: str, values: object, size: int) -> tuple[bytes, ...]:
    if not isinstance(values, list):
        raise TransactionDecodeError(f"sidecar: expected a list of {name}")
    for value in values:
        if not isinstance(value, bytes) or len(value) != size:
            raise TransactionDecodeError(f"sidecar: expected {name} of {size} bytes")
    return tuple(values)
