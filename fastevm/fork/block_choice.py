"""Parses the block of a fork: a tag, a number, a negative offset or a hash."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives.hex import quantity
from fastevm.fork.call_list import RpcCall

TAGS: Final = ("latest", "safe", "finalized", "earliest")
HASH = r"0x[0-9a-fA-F]{64}"
NUMBER = r"-?\d+|0x[0-9a-fA-F]{1,16}"

BlockLike = str | int | bytes


class BlockChoice(Struct, frozen=True):
    """The block of a fork.

    Exactly one field is set: ``tag``, ``number``, ``below`` (distance from the newest block) or
    ``hash``.
    """

    tag: str | None = None
    number: int | None = None
    below: int | None = None
    hash: bytes | None = None

    @property
    def call(self) -> RpcCall:
        """Returns the request for this block without transactions.

        For ``below``, requests the newest block.
        """
        if self.hash is not None:
            return RpcCall("eth_getBlockByHash", ("0x" + self.hash.hex(), False))
        number = None if self.number is None else quantity(self.number)
        named = number or self.tag or "latest"
        # a block with this tag exists, so null means that the server is still starting
        exists = named in TAGS
        return RpcCall("eth_getBlockByNumber", (named, False), exists=exists)

    def __str__(self) -> str:
        if self.hash is not None:
            return "0x" + self.hash.hex()
        if self.below is not None:
            return f"latest - {self.below}"
        return str(self.tag if self.number is None else self.number)


def read_block(block: Any) -> BlockChoice:
    """Parses a block: a tag, a number (negative: below the newest), or a hash.

    Numbers may be strings; hashes are 32 bytes or hex. Raises ValueError for anything else.
    """
    if isinstance(block, bytes) and len(block) == 32:
        return BlockChoice(hash=block)
    if isinstance(block, str):
        text = block.strip()
        if text.lower() in TAGS:
            return BlockChoice(tag=text.lower())
        if re.fullmatch(HASH, text):
            return BlockChoice(hash=bytes.fromhex(text[2:]))
        if re.fullmatch(NUMBER, text):
            block = int(text, 0) if text[:2] == "0x" else int(text)
    if isinstance(block, int) and not isinstance(block, bool):
        return BlockChoice(number=block) if block >= 0 else BlockChoice(below=-block)
    raise ValueError(f"block: expected {', '.join(TAGS)}, a number or a hash, found {block!r}")


def split_block(url: str) -> tuple[str, BlockChoice | None]:
    """Splits ``URL@BLOCK`` into the URL and the block.

    The block is None if the text has no ``@``.
    """
    address, _, text = url.rpartition("@")
    known = text.lower() in TAGS or re.fullmatch(HASH, text) or re.fullmatch(NUMBER, text)
    if known and "://" in address and address.split("://", 1)[1]:
        return address, read_block(text)
    return url, None
