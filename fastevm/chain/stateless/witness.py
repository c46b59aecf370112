"""Execution witnesses: the trie nodes, codes and headers that a block needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fastevm.core.execution.types import Header
from fastevm.core.primitives import rlp
from fastevm.core.primitives.config_values import read_bytes
from fastevm.errors import FastevmError, InvalidBlock

MAX_NODES: Final = 1 << 20
MAX_NODE_BYTES: Final = 1024  # a branch with 16 hashes has 532 bytes
MAX_CODES: Final = 1 << 16
MAX_CODE_BYTES: Final = 1 << 20  # the protocol's limits on code are much lower
MAX_KEYS: Final = 1 << 20
MAX_KEY_BYTES: Final = 52
MAX_HEADERS: Final = 256  # number of headers that BLOCKHASH can require
MAX_HEADER_BYTES: Final = 1 << 16
MAX_WITNESS_BYTES: Final = 1 << 28  # total bytes of all lists

# List -> maximum number of items and maximum bytes of each.
_LIMITS: Final = {
    "state": (MAX_NODES, MAX_NODE_BYTES),
    "codes": (MAX_CODES, MAX_CODE_BYTES),
    "keys": (MAX_KEYS, MAX_KEY_BYTES),
    "headers": (MAX_HEADERS, MAX_HEADER_BYTES),
}


class WitnessError(FastevmError, ValueError):
    """A witness does not prove a value that the block needs. The message says what is missing."""


class Witness(Struct, frozen=True):
    """The result of ``debug_executionWitness``.

    - ``state``: RLP of the nodes of the account trie and the storage tries, in one list
    - ``codes``: contract codes
    - ``keys``: addresses (20 bytes) and slots (32) that were read or written, sorted and distinct;
      verification does not use them
    - ``headers``: RLP of the parent's header and its ancestors, back to the oldest ancestor whose
      hash BLOCKHASH read

    Raises WitnessError if a list or an item exceeds the limits of this module.
    """

    state: tuple[bytes, ...]
    codes: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()
    headers: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        total = 0
        for name, (most, longest) in _LIMITS.items():
            items = getattr(self, name)
            if len(items) > most:
                raise WitnessError(f"{name}: {len(items)} items, over {most}")
            sizes = [len(item) for item in items]
            if max(sizes, default=0) > longest:
                at = next(at for at, size in enumerate(sizes) if size > longest)
                raise WitnessError(f"{name}[{at}]: {sizes[at]} bytes, over {longest}")
            total += sum(sizes)
        if total > MAX_WITNESS_BYTES:
            raise WitnessError(f"{total} bytes, over {MAX_WITNESS_BYTES}")

    @classmethod
    def from_json(cls, found: Any) -> Witness:
        """Reads the JSON form: four lists of hex strings. Raises WitnessError."""
        if not isinstance(found, Mapping):
            raise WitnessError("a witness is an object with state, codes, keys and headers")
        return cls(*(_strings(found.get(name), name) for name in cls.__struct_fields__))

    def to_json(self) -> dict[str, list[str]]:
        """Returns the JSON form (execution-apis 847), without ``keys`` if there are none."""
        return {
            name: ["0x" + item.hex() for item in getattr(self, name)]
            for name in self.__struct_fields__
            if name != "keys" or self.keys
        }


def _strings(values: Any, name: str) -> tuple[bytes, ...]:
    if values is None and name in ("codes", "keys"):
        return ()
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise WitnessError(f"{name}: expected a list of hex strings")
    if len(values) > _LIMITS[name][0]:
        raise WitnessError(f"{name}: {len(values)} items, over {_LIMITS[name][0]}")
    try:
        return tuple(read_bytes(item, f"{name}[{at}]") for at, item in enumerate(values))
    except ValueError as error:
        raise WitnessError(str(error)) from None


def ancestors_of(block_parent: bytes, headers: Sequence[bytes]) -> tuple[Header, ...]:
    """Returns the parent's header, whose hash is ``block_parent``, and then its ancestors.

    Raises WitnessError if a header's hash is not the parent hash of the header before it.
    """
    by_hash: dict[bytes, Header] = {}
    for at, encoded in enumerate(headers):
        try:
            header = Header.from_items(rlp.decode(encoded))
        except (InvalidBlock, ValueError) as error:
            raise WitnessError(f"headers[{at}]: {error}") from None
        by_hash[header.hash] = header
    chain, wanted = [], block_parent
    while (header_found := by_hash.pop(wanted, None)) is not None:
        chain.append(header_found)
        wanted = header_found.parent_hash
    if not chain:
        raise WitnessError(f"headers: the parent 0x{block_parent.hex()} is missing")
    if by_hash:
        number = next(iter(by_hash.values())).number
        raise WitnessError(f"headers: block {number} is not linked to the parent")
    return tuple(chain)
