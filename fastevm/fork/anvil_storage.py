"""Reads anvil's fork cache: ``~/.foundry/cache/rpc/CHAIN/BLOCK/storage.json``. Never writes it.

The file name contains the block number. The file is used if its block environment matches the
header. Some of its slots are verified in the first round trip.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from fastevm.core.primitives.config_values import read_number
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.fork.collector import MAX_NONCE, BadValue, bytes_of, word_of
from fastevm.fork.pinned_block import PinnedBlock

log = logging.getLogger(__name__)

FOLDER: Final = Path(".foundry/cache/rpc")
MAX_FILE_BYTES: Final = 512 * 1024 * 1024  # decompressed
ZSTD: Final = bytes.fromhex("28b52ffd")
# Chain names used by foundry; other chains are named by their id.
CHAIN_NAMES: Final = {
    1: "mainnet", 10: "optimism", 56: "bsc", 100: "gnosis", 130: "unichain", 137: "polygon",
    252: "fraxtal", 480: "world", 1868: "soneium", 8453: "base", 31337: "anvil-hardhat",
    34443: "mode", 42161: "arbitrum", 42220: "celo", 43114: "avalanche", 57073: "ink",
    59144: "linea", 81457: "blast", 84532: "base-sepolia", 534352: "scroll", 560048: "hoodi",
    7777777: "zora", 11155111: "sepolia", 11155420: "optimism-sepolia",
}  # fmt: skip
# Member of the block environment -> the header member that it must equal.
ENVIRONMENT: Final = {
    "number": "number",
    "timestamp": "timestamp",
    "gas_limit": "gasLimit",
    "basefee": "baseFeePerGas",
    "prevrandao": "mixHash",
    "beneficiary": "miner",
}


class AnvilValues(Struct):
    """Accounts by address, and slots by account."""

    accounts: dict[bytes, RemoteAccount] = field(default_factory=dict)
    slots: dict[bytes, dict[int, int]] = field(default_factory=dict)

    def all_slots(self) -> Iterator[tuple[bytes, int, int]]:
        """Yields address, slot and value of each slot."""
        for address, slots in self.slots.items():
            yield from ((address, slot, value) for slot, value in slots.items())

    def add_to(self, known: Found, wanted: Wanted) -> None:
        """Adds the wanted accounts that are not known, and all slots of wanted accounts."""
        for address in wanted.accounts & self.accounts.keys():
            known.accounts.setdefault(address, self.accounts[address])
        for address in wanted.accounts | {address for address, _ in wanted.slots}:
            for slot, value in self.slots.get(address, {}).items():
                known.slots.setdefault((address, slot), value)


def anvil_values(chain_id: int, block: PinnedBlock, home: Path | None = None) -> AnvilValues | None:
    """Returns anvil's values of this block, or None if there is no matching file."""
    for path in _files(chain_id, block.number, Path.home() if home is None else home):
        try:
            content = json.loads(_text(path))
            if _fits(content, block):
                return _values(content)
            log.info("%s ignored: it does not match %s", path, block)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, BadValue) as error:
            log.info("%s cannot be read: %s", path, error)
    return None


def _files(chain_id: int, number: int, home: Path) -> Iterable[Path]:
    for name in (CHAIN_NAMES.get(chain_id), str(chain_id)):
        if name is not None:
            yield from sorted((home / FOLDER / name / str(number)).glob("storage*.json"))


def _text(path: Path) -> bytes:
    """Returns the file's JSON text. Newer versions of anvil compress it with zstd."""
    with path.open("rb") as file:
        if file.read(len(ZSTD)) != ZSTD:
            file.seek(0)
            found = file.read(MAX_FILE_BYTES + 1)
        else:
            file.seek(0)
            try:
                zstandard = import_module("zstandard")
            except ImportError:
                raise ValueError("compressed with zstd: install the package zstandard") from None
            try:
                reader = zstandard.ZstdDecompressor().stream_reader(file)
                found = reader.read(MAX_FILE_BYTES + 1)
            except zstandard.ZstdError as error:
                raise ValueError(str(error)) from None
    if len(found) > MAX_FILE_BYTES:
        raise ValueError(f"more than {MAX_FILE_BYTES} bytes")
    return bytes(found)


def _fits(content: Mapping[str, Any], block: PinnedBlock) -> bool:
    """Returns whether all members that the block environment and the block share are equal."""
    environment = content["meta"]["block_env"]
    compared = 0
    for name, member in ENVIRONMENT.items():
        have, want = environment.get(name), block.header.get(member)
        if have is not None and want is not None:
            compared += 1
            if read_number(have, name) != read_number(want, member):
                return False
    parents = content.get("block_hashes") or {}
    parent = {_number(key): value for key, value in parents.items()}.get(block.number - 1)
    same = parent is None or bytes_of(parent, "block_hashes", 32) == block.parent_hash
    return same and compared >= len(ENVIRONMENT) - 1


def _values(content: Mapping[str, Any]) -> AnvilValues:
    found = AnvilValues()
    for name, entry in content["accounts"].items():
        code = _code(entry)
        if code is not None:
            nonce = read_number(entry["nonce"], "nonce")
            found.accounts[bytes_of(name, "address", 20)] = RemoteAccount(
                word_of(entry["balance"], "balance"), min(nonce, MAX_NONCE), code
            )
    for name, slots in content["storage"].items():
        found.slots[bytes_of(name, "address", 20)] = {
            word_of(slot, "slot"): word_of(value, "value") for slot, value in slots.items()
        }
    return found


def _code(entry: Mapping[str, Any]) -> bytes | None:
    """Returns the account's code without the file's padding, or None if its hash does not match."""
    digest = bytes_of(entry["code_hash"], "code_hash", 32)
    if digest == keccak256(b""):
        return b""
    form = entry.get("code")
    if not isinstance(form, Mapping):
        return None
    [content] = form.values()
    text = content if isinstance(content, str) else content.get("bytecode", "0x")
    padded = bytes_of(text, "code")
    length = content.get("original_len") if isinstance(content, Mapping) else None
    code = padded if length is None else padded[:length]
    return code if keccak256(code) == digest else None


def _number(key: str) -> int:
    return read_number(key, "block_hashes")
