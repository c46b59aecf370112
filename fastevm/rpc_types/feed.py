"""Messages of the feed: pre-confirmed slices as JSON (flashblocks and subblocks).

A message has the new transactions of its slice and the totals of the block so far (gas, receipts
root, bloom). The first message of a block has the header's fixed fields. State root, block hash and
withdrawals root are zero if the builder does not compute them, as always in subblocks.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

from msgspec import Struct

from fastevm.chain.pending_block import PendingBlock
from fastevm.core.execution.types import EMPTY_ROOT, ZERO_HASH, Header
from fastevm.core.primitives.config_values import read_number
from fastevm.core.primitives.hex import hex_bytes
from fastevm.errors import FastevmError
from fastevm.rpc_client.large_json import decode as decode_json

MAX_MESSAGE_BYTES = 32 * 1024 * 1024  # most bytes of a decompressed message
BROTLI_QUALITY = 5
BROTLI_WINDOW = 22
UNKNOWN_SLICE = "0-0"
UINT64 = 2**64


@cache
def _brotli() -> Any:
    """Imports brotli when the first compressed frame arrives.

    Returns None if it is not installed.
    """
    try:
        return import_module("brotli")
    except ImportError:
        return None


class FeedError(FastevmError, ValueError):
    """A frame that is not a message of a feed. The text names the invalid part."""


class FeedBase(Struct, frozen=True, kw_only=True):
    """The header fields that are fixed when a block begins, under the names of the feed.

    ``slot_number``: None unless the header has the field (Amsterdam) and the builder sends it.
    """

    parent_beacon_block_root: bytes
    parent_hash: bytes
    fee_recipient: bytes
    prev_randao: bytes
    block_number: int
    gas_limit: int
    timestamp: int
    extra_data: bytes
    base_fee_per_gas: int
    slot_number: int | None = None


class FeedSlice(Struct, frozen=True, kw_only=True):
    """A message of the feed. A root or hash of zero means that the builder did not compute it.

    ``transactions``: the transactions of the slice as canonical bytes; all other members of
    ``diff`` are totals of the block so far. ``post_exec_tx``: the post-exec transaction that would
    end the block now; it refunds gas (OP Stack, Lagoon). ``previous_id``: ``block-index`` of the
    preceding slice, or None if unknown.
    """

    payload_id: bytes
    index: int
    block_number: int
    base: FeedBase | None
    transactions: tuple[bytes, ...]
    gas_used: int
    receipts_root: bytes
    logs_bloom: bytes
    state_root: bytes = ZERO_HASH
    block_hash: bytes = ZERO_HASH
    withdrawals_root: bytes = ZERO_HASH
    blob_gas_used: int | None = None
    post_exec_tx: bytes | None = None
    previous_id: str | None = None

    @property
    def id(self) -> str:
        """The id ``block-index``, with which the next message may refer to this message."""
        return f"{self.block_number}-{self.index}"

    @property
    def tells_nothing_of_state(self) -> bool:
        """Whether state root, block hash and withdrawals root are all zero, as in subblocks."""
        return self.state_root == self.block_hash == self.withdrawals_root == ZERO_HASH


# --- writing --------------------------------------------------------------------------------------


def slice_of(pending: PendingBlock, previous_id: str | None = None) -> FeedSlice:
    """Returns the message for a slice published by this node."""
    header = pending.header
    return FeedSlice(
        payload_id=pending.payload_id,
        index=pending.slice_index,
        block_number=header.number,
        base=_base_of(header) if pending.slice_index == 0 else None,
        transactions=tuple(
            transaction.raw for transaction in pending.transactions[pending.first_new :]
        ),
        gas_used=header.gas_used,
        receipts_root=header.receipts_root,
        logs_bloom=header.logs_bloom,
        block_hash=header.hash,
        withdrawals_root=header.withdrawals_root or EMPTY_ROOT,
        blob_gas_used=header.blob_gas_used,
        previous_id=previous_id,
    )


def encode(message: FeedSlice) -> str:
    """Returns the JSON text of a message with a reference to the preceding message."""
    metadata = {
        "block_number": message.block_number,
        "access_list": None,
        "prev_flashblock_id": message.previous_id or UNKNOWN_SLICE,
    }
    return json.dumps({**diff_and_base(message), "metadata": metadata}, separators=(",", ":"))


def diff_and_base(message: FeedSlice) -> dict[str, Any]:
    """Returns the members of a message, except metadata. Only the first message has ``base``."""
    diff: dict[str, Any] = {
        "state_root": hex_bytes(message.state_root),
        "receipts_root": hex_bytes(message.receipts_root),
        "logs_bloom": hex_bytes(message.logs_bloom),
        "gas_used": hex(message.gas_used),
        "block_hash": hex_bytes(message.block_hash),
        "transactions": [hex_bytes(raw) for raw in message.transactions],
        "withdrawals": [],
        "withdrawals_root": hex_bytes(message.withdrawals_root),
    }
    if message.blob_gas_used is not None:
        diff["blob_gas_used"] = hex(message.blob_gas_used)
    if message.post_exec_tx is not None:
        diff["post_exec_tx"] = hex_bytes(message.post_exec_tx)
    found: dict[str, Any] = {"payload_id": hex_bytes(message.payload_id), "index": message.index}
    if message.base is not None:
        found["base"] = _base_json(message.base)
    found["diff"] = diff
    return found


def compress(text: str | bytes) -> bytes:
    """Returns a message as a Brotli frame. Raises FastevmError if brotli is not installed."""
    brotli = _brotli()
    if brotli is None:
        raise FastevmError("compressed feeds need the package brotli")
    data = text.encode() if isinstance(text, str) else text
    packed: bytes = brotli.compress(data, quality=BROTLI_QUALITY, lgwin=BROTLI_WINDOW)
    return packed


def _base_of(header: Header) -> FeedBase:
    return FeedBase(
        parent_beacon_block_root=header.parent_beacon_block_root or ZERO_HASH,
        parent_hash=header.parent_hash,
        fee_recipient=header.coinbase,
        prev_randao=header.prev_randao,
        block_number=header.number,
        gas_limit=header.gas_limit,
        timestamp=header.timestamp,
        extra_data=header.extra_data,
        base_fee_per_gas=header.base_fee_per_gas or 0,
        slot_number=header.slot_number,
    )


def _base_json(base: FeedBase) -> dict[str, str]:
    return {
        name: hex_bytes(value) if isinstance(value, bytes) else hex(value)
        for name in FeedBase.__struct_fields__
        for value in (getattr(base, name),)
        if value is not None
    }


# --- reading --------------------------------------------------------------------------------------


def decode(frame: str | bytes, *, limit: int = MAX_MESSAGE_BYTES) -> FeedSlice:
    """Decodes a text or binary frame with JSON or Brotli.

    Ignores unknown members. Raises FeedError for invalid frames, and for more than ``limit`` bytes.
    """
    return read_slice(read_frame(frame, limit=limit))


def read_frame(frame: str | bytes, *, limit: int = MAX_MESSAGE_BYTES) -> Mapping[str, Any]:
    """Returns the JSON object in a frame.

    Raises FeedError if the frame is not a JSON object or has more than ``limit`` bytes.
    """
    text = frame if isinstance(frame, str) else _unpacked(frame, limit)
    if len(text) > limit:
        _fail("frame", "payload too large")
    try:
        found = decode_json(text)
    except ValueError as error:
        raise FeedError(f"frame: {error}") from None
    return _object(found, "message")


def is_json(frame: str | bytes) -> bool:
    """Returns whether a frame is uncompressed JSON, that is, whether it begins with a brace."""
    return isinstance(frame, str) or frame.lstrip()[:1] == b"{"


def read_slice(members: Mapping[str, Any], number: int | None = None) -> FeedSlice:
    """Reads a message from a JSON object. Raises FeedError with the invalid member.

    ``number``: the block number for messages whose metadata do not have it.
    """
    metadata = _object(members.get("metadata") or {}, "metadata")
    previous = metadata.get("prev_flashblock_id")
    known = isinstance(previous, str) and previous != UNKNOWN_SLICE
    diff = _object(members.get("diff"), "diff")
    index = _integer(members.get("index"), "index")
    base = members.get("base")
    if (base is not None) != (index == 0):
        _fail("base", "the first message of a block has one, and no other")
    read = None if base is None else _read_base(_object(base, "base"))
    if read is not None:
        number = read.block_number
    return FeedSlice(
        payload_id=_bytes(members, "payload_id", 8),
        index=index,
        block_number=_block_number(metadata, number),
        base=read,
        previous_id=previous if known else None,
        **_read_diff(diff),
    )


def _block_number(metadata: Mapping[str, Any], number: int | None) -> int:
    stated = metadata.get("block_number")
    if stated is None and number is not None:
        return number
    found = _integer(stated, "metadata.block_number")
    if number is not None and found != number:
        _fail("metadata.block_number", f"expected {number}, found {found}")
    return found


def _unpacked(frame: bytes, limit: int) -> str:
    """Decompresses a binary frame. A frame that begins with a brace is JSON and stays as it is."""
    if is_json(frame):
        with contextlib.suppress(UnicodeDecodeError):
            return frame.decode()
    brotli = _brotli()
    if brotli is None:
        _fail("frame", "compressed feeds need the package brotli")
    unpacker = brotli.Decompressor()
    try:
        unpacked = unpacker.process(frame, output_buffer_limit=limit + 1)
        if not unpacker.is_finished() and len(unpacked) <= limit:
            _fail("frame", "neither JSON nor complete Brotli")
        if len(unpacked) > limit:
            _fail("frame", "payload too large")
        return str(unpacked, "utf-8")
    except (brotli.error, UnicodeDecodeError):
        _fail("frame", "neither JSON nor Brotli")


def _read_base(members: Mapping[str, Any]) -> FeedBase:
    return FeedBase(
        parent_beacon_block_root=_bytes(members, "parent_beacon_block_root", 32),
        parent_hash=_bytes(members, "parent_hash", 32),
        fee_recipient=_bytes(members, "fee_recipient", 20),
        prev_randao=_bytes(members, "prev_randao", 32),
        block_number=_quantity(members, "block_number"),
        gas_limit=_quantity(members, "gas_limit"),
        timestamp=_quantity(members, "timestamp"),
        extra_data=_bytes(members, "extra_data"),
        base_fee_per_gas=_quantity(members, "base_fee_per_gas", 2**256),
        slot_number=(
            None if members.get("slot_number") is None else _quantity(members, "slot_number")
        ),
    )


def _read_diff(members: Mapping[str, Any]) -> dict[str, Any]:
    transactions = members.get("transactions")
    if not isinstance(transactions, list):
        _fail("transactions", "expected a list")
    found: dict[str, Any] = {
        "transactions": tuple(
            _data(raw, f"transactions[{index}]") for index, raw in enumerate(transactions)
        ),
        "gas_used": _quantity(members, "gas_used"),
        "receipts_root": _bytes(members, "receipts_root", 32),
        "logs_bloom": _bytes(members, "logs_bloom", 256),
        "state_root": _bytes(members, "state_root", 32),
        "block_hash": _bytes(members, "block_hash", 32),
    }
    if members.get("withdrawals"):
        _fail("withdrawals", "expected an empty list")
    if members.get("withdrawals_root") is not None:
        found["withdrawals_root"] = _bytes(members, "withdrawals_root", 32)
    if members.get("blob_gas_used") is not None:
        found["blob_gas_used"] = _quantity(members, "blob_gas_used")
    if members.get("post_exec_tx") is not None:
        found["post_exec_tx"] = _bytes(members, "post_exec_tx")
    return found


def _object(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _fail(name, "expected an object")
    return value


def _integer(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < UINT64:
        _fail(name, f"expected a number, found {value!r}")
    return value


def _quantity(members: Mapping[str, Any], name: str, below: int = UINT64) -> int:
    value = members.get(name)
    try:
        number = read_number(value, name) if isinstance(value, str) else -1
    except ValueError as error:
        raise FeedError(str(error)) from None
    if not 0 <= number < below:
        _fail(name, f"expected a quantity, found {value!r}")
    return number


def _bytes(members: Mapping[str, Any], name: str, size: int | None = None) -> bytes:
    data = _data(members.get(name), name)
    if size is not None and len(data) != size:
        _fail(name, f"expected {size} bytes, found {len(data)}")
    return data


def _data(value: Any, name: str) -> bytes:
    if not isinstance(value, str) or not value.startswith("0x"):
        _fail(name, f"expected a hex string, found {value!r}"[:100])
    try:
        return bytes.fromhex(value[2:])
    except ValueError:
        _fail(name, "expected a hex string")


def _fail(name: str, text: str) -> NoReturn:
    raise FeedError(f"{name}: {text}")
