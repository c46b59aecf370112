"""The payload of a block's record: the block, its block access list and its receipts."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from fastevm.chain.storage.receipts import pack_receipts, unpack_receipts
from fastevm.core.execution.block.block_decoding import decode_block, header_rlp, parent_hash_of
from fastevm.core.execution.transaction.unsigned_sender import is_impersonated, with_named_sender
from fastevm.core.execution.types import Block, Receipt
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace

_SIZE: Final = struct.Struct(">I")  # size of the block's RLP, which follows; then come the receipts
# flag in this size field: a block access list, after its own size, precedes the receipts
_LISTED: Final = 1 << 31


def pack_body(block: Block, receipts: Sequence[Receipt]) -> bytes:
    """Encodes a block, its block access list if any, and its receipts."""
    encoded, accesses = block.rlp(), block.access_list
    if accesses is None:
        return _SIZE.pack(len(encoded)) + encoded + pack_receipts(receipts)
    parts = (_SIZE.pack(len(encoded) | _LISTED), encoded, _SIZE.pack(len(accesses)), accesses)
    return b"".join(parts) + pack_receipts(receipts)


def block_of(packed: bytes) -> Block:
    """Decodes the block, with the senders of impersonated transactions. Raises InvalidBlock."""
    end, listed = _block_end(packed)
    block = decode_block(packed[_SIZE.size : end])
    if listed:
        block = block.with_access_list(packed[end + _SIZE.size : _receipts_at(packed)])
    if not any(map(is_impersonated, block.transactions)):
        return block
    return replace(block, transactions=tuple(map(with_named_sender, block.transactions)))


def hashes_of(packed: bytes) -> tuple[bytes, bytes]:
    """Returns the hash of the block and the hash of its parent. Decodes nothing else.

    Raises InvalidBlock.
    """
    header = header_rlp(packed, _SIZE.size)
    return keccak256(header), parent_hash_of(header)


def receipts_of(packed: bytes) -> tuple[Receipt, ...]:
    """Decodes the receipts. Raises StorageError."""
    return unpack_receipts(packed[_receipts_at(packed) :])


def _receipts_at(packed: bytes) -> int:
    end, listed = _block_end(packed)
    if not listed:
        return end
    (size,) = _SIZE.unpack_from(packed, end)
    return end + _SIZE.size + int(size)


def _block_end(packed: bytes) -> tuple[int, bool]:
    """Returns the offset where the block ends, and whether an access list follows."""
    (size,) = _SIZE.unpack_from(packed)
    return _SIZE.size + (int(size) & ~_LISTED), bool(size & _LISTED)
