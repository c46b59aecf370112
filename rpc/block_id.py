"""Decodes block parameters: number, tag, hash, and the object of EIP-1898."""

from typing import Any, Final

from msgspec import Struct

from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_hash,
    decode_uint64,
    object_fault,
    parse_quantity,
)

LATEST: Final = "latest"
PENDING: Final = "pending"
EARLIEST: Final = "earliest"
SAFE: Final = "safe"
FINALIZED: Final = "finalized"
TAGS: Final = frozenset((LATEST, PENDING, EARLIEST, SAFE, FINALIZED))

COUNT_LIMIT: Final = 2**64
_NUMBER_LIMIT: Final = 2**63
_HASH_TEXT_LENGTH: Final = 66


class BlockId(Struct, frozen=True):
    """A decoded block parameter. Exactly one of ``tag``, ``number`` and ``hash`` is set."""

    tag: str | None = None
    number: int | None = None
    hash: bytes | None = None
    require_canonical: bool = False

    @property
    def is_pending(self) -> bool:
        """Return whether the block parameter is ``pending``, the pre-confirmed state."""
        return self.tag == PENDING


_BY_TAG: Final = {tag: BlockId(tag=tag) for tag in TAGS}
LATEST_BLOCK: Final = _BY_TAG[LATEST]
PENDING_BLOCK: Final = _BY_TAG[PENDING]
EARLIEST_BLOCK: Final = _BY_TAG[EARLIEST]


def decode_number_or_tag(value: Any) -> BlockId:
    """Decode a block number or tag, for methods that take no hash."""
    text = value.strip() if isinstance(value, str) else ""
    if text in TAGS:
        return _BY_TAG[text]
    if not isinstance(value, str):
        # go-ethereum reads a bare number as its digits, which lack the prefix
        raise DecodeError("hex string without 0x prefix")
    number = parse_quantity(text)
    if number >= _NUMBER_LIMIT:
        raise DecodeError("block number larger than int64")
    return BlockId(number=number)


def decode_count(value: Any, *, field: str = "") -> int:
    """Decode a count: a JSON number, as many clients send, or a quantity."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT_LIMIT:
        return value
    return decode_uint64(value, field=field)


def decode_number_tag_or_int(value: Any) -> BlockId:
    """Decode a block number (a JSON number or a quantity) or a tag."""
    if isinstance(value, int) and not isinstance(value, bool):
        return decode_number_or_tag(hex(decode_count(value)))
    return decode_number_or_tag(value)


def decode_block(value: Any) -> BlockId:
    """Decode a block parameter: number, tag, 32-byte hash, {blockNumber} or {blockHash, ...}."""
    if not isinstance(value, str):
        if isinstance(value, dict):
            return _from_object(value)
        raise object_fault(value, "string")
    if value in TAGS:
        return _BY_TAG[value]
    if len(value) == _HASH_TEXT_LENGTH:
        return BlockId(hash=decode_hash(value))
    number = parse_quantity(value)
    if number >= _NUMBER_LIMIT:
        raise DecodeError("blocknumber too high")
    return BlockId(number=number)


def _from_object(value: dict[str, Any]) -> BlockId:
    number, block_hash = value.get("blockNumber"), value.get("blockHash")
    if number is not None and block_hash is not None:
        raise DecodeError("cannot specify both BlockHash and BlockNumber, choose one or the other")
    canonical = value.get("requireCanonical")
    if canonical is not None and not isinstance(canonical, bool):
        raise object_fault(canonical, "bool", "BlockNumberOrHash.requireCanonical")
    if number is not None:
        return decode_number_or_tag(number)
    if block_hash is None:
        raise DecodeError("neither block number nor block hash specified")
    found = decode_hash(block_hash, field="BlockNumberOrHash.blockHash")
    return BlockId(hash=found, require_canonical=bool(canonical))
