"""Decodes and matches the filter object of eth_getLogs, eth_newFilter and eth_subscribe."""

import sys
from typing import Any, Final

from msgspec import Struct

from fastevm.chain.logs import LogQuery
from fastevm.core.execution.types import Log
from fastevm.rpc.block_id import LATEST_BLOCK, PENDING_BLOCK, BlockId, decode_number_or_tag
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import LOG_CHOICES_LIMIT, LOG_TOPICS_LIMIT
from fastevm.rpc_types.quantity import DecodeError, decode_hash, json_kind, object_fault, text_fault

CHOICE_SIZE: Final = 80  # bytes of memory of an address or a topic, besides its entry in the set


class LogFilter(Struct, frozen=True, kw_only=True):
    """A decoded log filter. An empty set of addresses or topics is a wildcard.

    Either ``block_hash`` selects one block, or ``first`` and ``last`` an inclusive range.
    """

    addresses: frozenset[bytes] = frozenset()
    topics: tuple[frozenset[bytes], ...] = ()
    block_hash: bytes | None = None
    has_range: bool = False
    first: BlockId = LATEST_BLOCK
    last: BlockId = LATEST_BLOCK

    @property
    def memory(self) -> int:
        """Return the bytes of memory that the addresses and topics use."""
        choices = (self.addresses, *self.topics)
        return sum(sys.getsizeof(choice) + CHOICE_SIZE * len(choice) for choice in choices)

    def without_range(self) -> "LogFilter":
        """Return the filter with the same addresses and topics, and no block range."""
        return LogFilter(addresses=self.addresses, topics=self.topics)

    def query(self) -> LogQuery:
        """Return the addresses and topics as a compiled query."""
        return LogQuery(self.addresses, self.topics)

    def matches(self, entry: Log) -> bool:
        """Return whether a log matches the addresses and topics."""
        if self.addresses and entry.address not in self.addresses:
            return False
        if len(self.topics) > len(entry.topics):
            return False
        return all(
            not wanted or topic in wanted
            for wanted, topic in zip(self.topics, entry.topics, strict=False)
        )


def decode_filter(value: Any) -> LogFilter:
    """Decode a filter object.

    Accepts a blockHash together with a block range: ``has_range`` then shows that there is a range.
    """
    if not isinstance(value, dict):
        raise object_fault(value, "filters.input")
    block_hash, from_, to = (value.get(n) for n in ("blockHash", "fromBlock", "toBlock"))
    first = LATEST_BLOCK if from_ is None else decode_number_or_tag(from_)
    # a range that begins at the pending block also ends there by default: no block comes later
    default = PENDING_BLOCK if first.is_pending else LATEST_BLOCK
    return LogFilter(
        addresses=_decode_addresses(value.get("address")),
        topics=_decode_topics(value.get("topics")),
        block_hash=None if block_hash is None else decode_hash(block_hash, field="input.blockHash"),
        has_range=from_ is not None or to is not None,
        first=first,
        last=default if to is None else decode_number_or_tag(to),
    )


def check_choices(wanted: LogFilter) -> None:
    """Raise RpcError if a filter has too many alternatives for an address or topic."""
    if max(map(len, (wanted.addresses, *wanted.topics))) > LOG_CHOICES_LIMIT:
        raise RpcError("too_many_choices")


def _decode_addresses(value: Any) -> frozenset[bytes]:
    if value is None:
        return frozenset()
    if isinstance(value, str):
        try:
            return frozenset((_fixed(value, 20, "address"),))
        except DecodeError as fault:
            raise DecodeError(f"invalid address: {fault}") from None
    if not isinstance(value, list):
        raise DecodeError("invalid addresses in query")
    return frozenset(_address_at(position, entry) for position, entry in enumerate(value))


def _address_at(position: int, value: Any) -> bytes:
    if not isinstance(value, str):
        raise DecodeError(f"non-string address at index {position}")
    try:
        return _fixed(value, 20, "address")
    except DecodeError as fault:
        raise DecodeError(f"invalid address at index {position}: {fault}") from None


def _decode_topics(value: Any) -> tuple[frozenset[bytes], ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise DecodeError(
            f"json: cannot unmarshal {json_kind(value)} into Go struct field input.topics"
            " of type []interface {}"
        )
    if len(value) > LOG_TOPICS_LIMIT:
        raise DecodeError("exceed max topics")
    return tuple(_topic_choices(position) for position in value)


def _topic_choices(value: Any) -> frozenset[bytes]:
    """Decode one topic position. A null among the alternatives makes the position a wildcard."""
    if value is None:
        return frozenset()
    if isinstance(value, str):
        return frozenset((_fixed(value, 32, "topic"),))
    if not isinstance(value, list) or any(not isinstance(v, str | None) for v in value):
        raise DecodeError("invalid topic(s)")
    if None in value:
        return frozenset()
    return frozenset(_fixed(topic, 32, "topic") for topic in value)


def _fixed(text: str, size: int, what: str) -> bytes:
    if not text:
        raise DecodeError("empty hex string")
    reason = text_fault(text)
    if reason is not None:
        raise DecodeError(reason)
    try:
        raw = bytes.fromhex(text[2:])
    except ValueError:
        raise DecodeError("invalid hex string") from None
    if 2 * len(raw) != len(text) - 2:  # fromhex skips spaces
        raise DecodeError("invalid hex string")
    if len(raw) != size:
        raise DecodeError(
            f"hex has invalid length {len(raw)} after decoding; expected {size} for {what}"
        )
    return raw
