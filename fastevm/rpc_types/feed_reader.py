"""Reads one connection to a feed. The first message determines the format."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.errors import FastevmError
from fastevm.rpc_types.feed import FeedError, FeedSlice, is_json, read_frame, read_slice


class FeedForm(Enum):
    """The kind of messages in a feed. The values are labels of a metric.

    FLASHBLOCKS have a withdrawals root, a block hash and optionally a state root; SUBBLOCKS (OP
    Stack, since August 2026) have none of these. HEADERS are canonical blocks, without
    pre-confirmations.
    """

    FLASHBLOCKS = "flashblocks"
    SUBBLOCKS = "subblocks"
    HEADERS = "headers"


class FeedHead(NamedTuple):
    """A canonical block announced by a feed of headers. ``hash`` has 32 bytes."""

    number: int
    hash: bytes


class FeedReader:
    """Reads the messages of one connection.

    ``form`` and ``compressed`` (whether frames are Brotli) are None until the first message.
    """

    def __init__(self) -> None:
        self.form: FeedForm | None = None
        self.compressed: bool | None = None
        self._block: tuple[str, int] | None = None  # payload id and number of the last message

    def read(self, frame: str | bytes) -> FeedSlice | FeedHead | None:
        """Decodes a text or binary frame. Returns None for a JSON-RPC message without a header.

        Raises FeedError for any other frame.
        """
        members = read_frame(frame)
        if "jsonrpc" in members or "parentHash" in members:
            found: FeedSlice | FeedHead | None = _read_head(members)
            form = FeedForm.HEADERS
        else:
            found = self._read_slice(members)
            form = FeedForm.SUBBLOCKS if found.tells_nothing_of_state else FeedForm.FLASHBLOCKS
        if self.form is None and found is not None:
            self.form, self.compressed = form, not is_json(frame)
        return found

    def _read_slice(self, members: Mapping[str, Any]) -> FeedSlice:
        payload_id = members.get("payload_id")
        number = None
        if self._block is not None and self._block[0] == payload_id:
            number = self._block[1]
        found = read_slice(members, number)
        self._block = str(payload_id), found.block_number
        return found


def _read_head(members: Mapping[str, Any]) -> FeedHead | None:
    """Reads a header object or a ``newHeads`` notification. Returns None if there is no header."""
    if "jsonrpc" in members:
        params = members.get("params")
        members = (params.get("result") if isinstance(params, dict) else None) or {}
        if not isinstance(members, dict) or "parentHash" not in members:
            return None
    try:
        return FeedHead(
            read_number(members.get("number"), "number"),
            read_bytes(members.get("hash"), "hash", 32),
        )
    except (ValueError, FastevmError) as error:
        raise FeedError(f"header: {error}") from None
