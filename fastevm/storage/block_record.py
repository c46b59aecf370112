"""A block and its receipts as the payload of one record."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fastevm.execution.block_decoding import decode_block, header_rlp, parent_hash_of
from fastevm.execution.unsigned_sender import is_impersonated, with_named_sender
from fastevm.primitives.keccak import keccak256
from fastevm.storage.receipts import pack_receipts, unpack_receipts
from fastevm.types import Block, Receipt

_SIZE: Final = struct.Struct(">I")  # of the block's RLP, before it; its receipts follow it


def pack_body(block: Block, receipts: Sequence[Receipt]) -> bytes:
    """The bytes of a block and its receipts."""
    encoded = block.rlp()
    return _SIZE.pack(len(encoded)) + encoded + pack_receipts(receipts)


def block_of(packed: bytes) -> Block:
    """The block, with the senders that impersonated transactions name; InvalidBlock for none."""
    block = decode_block(packed[_SIZE.size : _receipts_at(packed)])
    if not any(map(is_impersonated, block.transactions)):
        return block
    return replace(block, transactions=tuple(map(with_named_sender, block.transactions)))


def hashes_of(packed: bytes) -> tuple[bytes, bytes]:
    """The hashes of the block and of its parent; nothing else is decoded. InvalidBlock."""
    header = header_rlp(packed, _SIZE.size)
    return keccak256(header), parent_hash_of(header)


def receipts_of(packed: bytes) -> tuple[Receipt, ...]:
    """The receipts; StorageError when they are none."""
    return unpack_receipts(packed[_receipts_at(packed) :])


def _receipts_at(packed: bytes) -> int:
    (size,) = _SIZE.unpack_from(packed)
    return _SIZE.size + int(size)
