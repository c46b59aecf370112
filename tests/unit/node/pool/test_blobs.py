"""Tests that blobs are found by their versioned hashes while their sidecars are kept."""

from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.node.pool.pool import TransactionPool


class Rich:
    """A state with funds for every account."""

    def balance(self, address: bytes) -> int:
        return 10**30

    def nonce(self, address: bytes) -> int:
        return 0

    def code(self, address: bytes) -> bytes:
        return b""


def test_a_blob_is_found_by_its_hash() -> None:
    hashes = [b"\x01" + bytes([number]) * 31 for number in (1, 2)]
    blobs = tuple(bytes([number]) * 131_072 for number in (7, 8))
    transaction = Transaction.build(
        to=b"\xb0" * 20, gas_limit=21_000, max_fee_per_gas=10, max_priority_fee_per_gas=1,
        max_fee_per_blob_gas=1, blob_versioned_hashes=hashes,
    ).sign(b"\x01" * 32)  # fmt: skip
    pool = TransactionPool(Rich())
    pool.add(transaction, BlobSidecar(0, blobs, (bytes(48),) * 2, (bytes(48),) * 2))
    assert [pool.blob(item) for item in hashes] == list(blobs)
    assert pool.blob(bytes(32)) is None
    pool.drop(transaction.hash)
    assert pool.blob(hashes[0]) is None
