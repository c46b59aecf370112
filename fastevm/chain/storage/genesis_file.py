"""``genesis.json`` of a data directory: the chain, and the block and slice intervals of a node."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from fastevm.chain.storage.record_file import StorageError
from fastevm.core.primitives.json_file import read_json
from fastevm.core.primitives.keccak import keccak256

GENESIS_NAME: Final = "genesis.json"
CHECKSUM: Final = "checksum"  # the member with the hash of the other members

_Hash = Annotated[str, msgspec.Meta(pattern="^0x[0-9a-f]{64}$")]
_Milliseconds = Annotated[int, msgspec.Meta(ge=1)]


class Pace(msgspec.Struct, frozen=True):
    """The block time and slice interval of a node that builds blocks, in milliseconds."""

    block_time_ms: int
    slice_interval_ms: int

    @property
    def times(self) -> dict[str, int]:
        """The intervals, under the names of `ChainConfig`."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    def __str__(self) -> str:
        return f"a block time of {self.block_time_ms} ms in slices of {self.slice_interval_ms} ms"


class GenesisFile(msgspec.Struct, rename="camel", omit_defaults=True):
    """The content of the file. ``genesis`` is in geth's format.

    The intervals are None until a node that builds blocks has used the directory.
    """

    genesis_hash: _Hash
    chain_id: int
    genesis: dict[str, Any]
    block_time_ms: _Milliseconds | None = None
    slice_interval_ms: _Milliseconds | None = None

    @property
    def label(self) -> bytes:
        """The label of all record files of the chain."""
        return file_label(bytes.fromhex(self.genesis_hash[2:]), self.chain_id)

    @property
    def pace(self) -> Pace | None:
        """The recorded block and slice intervals, or None if no node has recorded them."""
        if self.block_time_ms is None or self.slice_interval_ms is None:
            return None
        return Pace(self.block_time_ms, self.slice_interval_ms)

    def encoded(self) -> bytes:
        """The bytes of the file."""
        members = msgspec.to_builtins(self)
        return json.dumps({**members, CHECKSUM: checksum_of(members)}, indent=1).encode()


def genesis_file(
    genesis: Mapping[str, Any], genesis_hash: bytes, chain_id: int, pace: Pace | None = None
) -> GenesisFile:
    """Returns the content of the file for a chain."""
    found = GenesisFile("0x" + genesis_hash.hex(), chain_id, dict(genesis))
    if pace is not None:
        found.block_time_ms, found.slice_interval_ms = pace.block_time_ms, pace.slice_interval_ms
    return found


def read_genesis_file(path: Path) -> GenesisFile | None:
    """Reads a file. Returns None if it does not exist. Raises StorageError for invalid content."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from None
    return parse_genesis_file(data, path)


def parse_genesis_file(data: bytes, path: Path) -> GenesisFile:
    """Parses the content. Raises StorageError with the file's name and the invalid member."""
    try:
        found = msgspec.convert(read_json(data), GenesisFile)
        found.label  # noqa: B018 (a chain id that fits no label raises)
    except (ValueError, OverflowError) as error:
        raise StorageError(
            f"{path} is damaged ({error}): restore it from a copy, or remove it and give the "
            f"genesis to `fastevm db repair --genesis`"
        ) from None
    return found


def checksum_of(members: Mapping[str, Any]) -> str:
    """Returns the checksum of the members of the file."""
    text = json.dumps({**members, CHECKSUM: None}, sort_keys=True, separators=(",", ":"))
    return "0x" + keccak256(text.encode()).hex()


def has_changed(path: Path) -> bool:
    """Returns whether the file differs from what a node wrote. Accepts files without a checksum."""
    members = read_json(path.read_bytes())
    return members.get(CHECKSUM) not in (None, checksum_of(members))


def file_label(genesis_hash: bytes, chain_id: int) -> bytes:
    """Returns the label of a chain's record files. Raises OverflowError above 64-bit chain ids."""
    return genesis_hash + chain_id.to_bytes(8, "big")
