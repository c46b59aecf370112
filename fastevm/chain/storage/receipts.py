"""Encodes the receipts of a block as bytes, with every field that the execution determined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from fastevm.chain.storage.record_file import StorageError
from fastevm.core.execution.types import EMPTY_BLOOM, Log, Receipt

WORD_BYTES: Final = 32


class _Stored(msgspec.Struct, array_like=True):
    """A receipt in a file. Prices are bytes because MessagePack has no integers above 64 bits."""

    tx_type: int
    status: int | None
    post_state: bytes | None
    cumulative_gas_used: int
    logs: list[tuple[bytes, tuple[bytes, ...], bytes]]
    bloom: bytes
    gas_used: int
    effective_gas_price: bytes
    contract_address: bytes | None
    blob_gas_used: int | None
    blob_gas_price: bytes | None
    deposit_nonce: int | None = None  # this member and the next: only for deposits
    deposit_receipt_version: int | None = None


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(list[_Stored])


def pack_receipts(receipts: Sequence[Receipt]) -> bytes:
    """Encodes the receipts of one block."""
    return _ENCODER.encode([_stored(receipt) for receipt in receipts])


def unpack_receipts(data: bytes) -> tuple[Receipt, ...]:
    """Decodes what ``pack_receipts`` encoded. Raises StorageError."""
    try:
        return tuple(map(_restored, _DECODER.decode(data)))
    except msgspec.MsgspecError as error:
        raise StorageError(f"receipts: {error}") from None


def _stored(receipt: Receipt) -> tuple[object, ...]:
    """Returns the members of a ``_Stored`` as a tuple, which encodes equally and is created
    faster.
    """
    price = receipt.blob_gas_price
    stored = (
        receipt.tx_type,
        receipt.status,
        receipt.post_state,
        receipt.cumulative_gas_used,
        [(log.address, log.topics, log.data) for log in receipt.logs],
        receipt.bloom if receipt.logs else b"",
        receipt.gas_used,
        receipt.effective_gas_price.to_bytes(WORD_BYTES, "big"),
        receipt.contract_address,
        receipt.blob_gas_used,
        None if price is None else price.to_bytes(WORD_BYTES, "big"),
    )
    if receipt.deposit_nonce is None:
        return stored
    return (*stored, receipt.deposit_nonce, receipt.deposit_receipt_version)


def _restored(stored: _Stored) -> Receipt:
    price = stored.blob_gas_price
    return Receipt(
        tx_type=stored.tx_type,
        status=stored.status,
        post_state=stored.post_state,
        cumulative_gas_used=stored.cumulative_gas_used,
        logs=tuple(Log(*log) for log in stored.logs),
        bloom=stored.bloom or EMPTY_BLOOM,
        gas_used=stored.gas_used,
        effective_gas_price=int.from_bytes(stored.effective_gas_price, "big"),
        contract_address=stored.contract_address,
        blob_gas_used=stored.blob_gas_used,
        blob_gas_price=None if price is None else int.from_bytes(price, "big"),
        deposit_nonce=stored.deposit_nonce,
        deposit_receipt_version=stored.deposit_receipt_version,
    )
