"""Decodes blocks from RLP strictly. Every error is an InvalidBlock that names the field."""

from __future__ import annotations

from typing import Any

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header, Withdrawal
from fastevm.core.primitives import rlp
from fastevm.errors import InvalidBlock, TransactionDecodeError


def decode_block(raw: bytes, *, number: int | None = None) -> Block:
    """Decodes a block from its canonical RLP.

    Raises :class:`InvalidBlock` unless the bytes are the canonical encoding of a block of any fork.
    The error contains ``number`` if the block's own number cannot be decoded. The block is not
    validated.
    """
    try:
        items = rlp.decode(raw)
    except ValueError as error:
        raise InvalidBlock(number, "rlp", expected="canonical RLP", found=str(error)) from None
    if not isinstance(items, list) or len(items) not in (3, 4):
        found = f"{len(items)} items" if isinstance(items, list) else "a byte string"
        raise InvalidBlock(number, "rlp", expected="a list of 3 or 4 items", found=found)
    # keeps the RLP, which is canonical
    header = Header.from_items(items[0], number=number).with_rlp(header_rlp(raw))
    number = header.number
    withdrawals = items[3] if len(items) == 4 else None
    return Block(
        header=header,
        transactions=tuple(
            decode_transaction(item, f"transactions[{index}]", number)
            for index, item in enumerate(_list(items[1], "transactions", number))
        ),
        ommers=tuple(
            Header.from_items(item, field=f"ommers[{index}]", number=number)
            for index, item in enumerate(_list(items[2], "ommers", number))
        ),
        withdrawals=None if withdrawals is None else _withdrawals(withdrawals, number),
    )


def header_rlp(raw: bytes, at: int = 0) -> bytes:
    """Returns the RLP of the header of the block whose RLP starts at offset ``at``.

    Raises InvalidBlock if there is none.
    """
    start = at + _head_size(raw, at, 0)
    return raw[start : start + item_size(raw, start, 0)]


def parent_hash_of(header: bytes) -> bytes:
    """Returns the parent hash from the RLP of a header."""
    start = _head_size(header, 0, 0) + 1  # skip the length byte of the hash
    return header[start : start + 32]


def _head_size(data: bytes, at: int, number: int) -> int:
    """Returns the size of an RLP list header. Raises InvalidBlock if there is no list."""
    first = data[at]
    if first < 0xC0:
        raise InvalidBlock(number, "rlp", expected="a list", found=f"the byte 0x{first:02x}")
    return 1 if first <= 0xF7 else 1 + first - 0xF7


def item_size(data: bytes, at: int, number: int) -> int:
    """Returns the size in bytes of the RLP list at offset ``at``, including the list's header.

    Raises InvalidBlock for block ``number`` if there is no list at that offset.
    """
    head, first = _head_size(data, at, number), data[at]
    inner = first - 0xC0 if head == 1 else int.from_bytes(data[at + 1 : at + head], "big")
    size = head + inner
    if size > len(data) - at:
        expected = f"{size} bytes from offset {at}"
        raise InvalidBlock(number, "rlp", expected=expected, found=f"{len(data) - at}")
    return size


def decode_transaction(item: Any, field: str, number: int | None) -> Transaction:
    """Decodes a transaction in a block body: an RLP list if legacy, else a byte string."""
    raw = rlp.encode(item) if isinstance(item, list) else item
    if not isinstance(item, list) and raw[:1] >= b"\xc0":
        raise InvalidBlock(
            number, field, expected="a typed transaction", found="a legacy one in a string"
        )
    try:
        return Transaction.decode(raw)
    except TransactionDecodeError as error:
        raise InvalidBlock(
            number, field, expected="a canonical transaction", found=str(error)
        ) from None


def _withdrawals(item: Any, number: int) -> tuple[Withdrawal, ...]:
    return tuple(
        Withdrawal.from_items(entry, field=f"withdrawals[{index}]", number=number)
        for index, entry in enumerate(_list(item, "withdrawals", number))
    )


def _list(item: Any, field: str, number: int) -> list[Any]:
    if not isinstance(item, list):
        raise InvalidBlock(number, field, expected="a list", found="a byte string")
    return item
