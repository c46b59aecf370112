"""The block whose state a source reads, and its block parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastevm.core.primitives.config_values import read_bytes, read_number
from fastevm.core.primitives.hex import quantity
from fastevm.errors import ForkError


@dataclass(frozen=True, slots=True)
class PinnedBlock:
    """A block by number and hash (32 bytes), with its JSON object."""

    number: int
    hash: bytes
    header: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def read(cls, found: Any) -> PinnedBlock:
        """Reads a block object. Raises ForkError if it is invalid."""
        try:
            number = read_number(found["number"], "number")
            digest = read_bytes(found["hash"], "hash", 32)
            read_bytes(found["parentHash"], "parentHash", 32)
        except (TypeError, KeyError, ValueError) as error:
            raise ForkError(f"invalid block in an answer: {error}") from None
        return cls(number, digest, found)

    @property
    def by_hash(self) -> dict[str, Any]:
        """The block parameter by hash (EIP-1898), which selects the state of exactly this block."""
        return {"blockHash": "0x" + self.hash.hex(), "requireCanonical": False}

    @property
    def by_number(self) -> str:
        """The block parameter by number, which may mean another block after a reorganisation."""
        return quantity(self.number)

    @property
    def parent_hash(self) -> bytes:
        """The hash of the parent block."""
        return bytes.fromhex(self.header["parentHash"][2:])

    def __str__(self) -> str:
        return f"block {self.number} (0x{self.hash.hex()})"
