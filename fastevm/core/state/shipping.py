"""Serialises whole states, for other processes or files."""

import struct
import sys
import zlib
from typing import Final, NamedTuple

from fastevm.core.primitives.decompression import ZLIB, TooLarge, decompressed
from fastevm.core.state.layer import Layer
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Found, Wanted
from fastevm.errors import ForkError

MAGIC: Final = b"fastevm-state-1\n"
_HEAD: Final = struct.Struct(">20s32sQII")  # address, balance, nonce, code index, slots
_SLOT: Final = struct.Struct(">32s32s")
_LEVEL: Final = 1  # higher levels compress little more: states are mostly hashes and small numbers


def pack_layer(layer: Layer) -> bytes:
    """Serialises all accounts, codes and slots of a layer. Equal states give equal bytes."""
    codes: dict[bytes, int] = {}
    accounts: list[bytes] = []
    for address in sorted(layer.addresses()):
        slots = sorted(layer.storage_items(address).items())
        code = codes.setdefault(layer.code(address), len(codes))
        balance = layer.balance(address).to_bytes(32, "big")
        accounts.append(_HEAD.pack(address, balance, layer.nonce(address), code, len(slots)))
        accounts += [
            _SLOT.pack(slot.to_bytes(32, "big"), value.to_bytes(32, "big")) for slot, value in slots
        ]
    listed = b"".join(struct.pack(">I", len(code)) + code for code in codes)
    body = struct.pack(">I", len(codes)) + listed + b"".join(accounts)
    return MAGIC + zlib.compress(body, _LEVEL)


class Shipped(NamedTuple):
    """A serialised layer for another process, with the known values of its remote state."""

    packed: bytes
    hidden: dict[bytes, set[int] | None]
    known: Found | None = None
    chain_id: int = 0
    block_number: int = 0
    block_hash: bytes = b""


class ShippedSource:
    """The source of a shipped remote state. It cannot fetch anything."""

    def __init__(self, shipped: Shipped) -> None:
        self.chain_id, self.block_number = shipped.chain_id, shipped.block_number
        self.block_hash = shipped.block_hash

    def fetch(self, wanted: Wanted) -> Found:
        """Always raises ForkError."""
        raise ForkError(f"a shipped state lacks {wanted}")


def ship(layer: Layer) -> Shipped:
    """Serialises a layer with all values that the layer can read without its source."""
    remote, packed = layer.remote_state, pack_layer(layer)
    if remote is None:
        return Shipped(packed, {})
    source = remote.source
    return Shipped(
        packed,
        layer.hidden(),
        remote.known_values(),
        source.chain_id,
        source.block_number,
        source.block_hash,
    )


def unship(shipped: Shipped) -> Layer:
    """Restores a layer from the result of ``ship``. Its remote state cannot fetch values."""
    own = unpack_layer(shipped.packed)
    if shipped.known is None:
        return own
    remote = RemoteState(ShippedSource(shipped))
    remote.put(shipped.known)
    changes: dict[bytes, dict[str, object]] = {}
    for address in own.addresses():
        zeroed = shipped.hidden.get(address, set())
        changes[address] = {
            "balance": own.balance(address),
            "nonce": own.nonce(address),
            "code": own.code(address),
            "storage": dict.fromkeys(zeroed or (), 0) | own.storage_items(address),
            "reset": zeroed is None,
        }
    removed = shipped.hidden.keys() - changes.keys()
    return Layer.remote(remote).with_accounts(changes).without_accounts(removed)


def unpack_layer(data: bytes, *, limit: int | None = None) -> Layer:
    """Restores a layer from the bytes of ``pack_layer``.

    ``limit``: maximum unpacked size in bytes, and maximum size of the code of all accounts
    together. Set it for untrusted data, because a megabyte may unpack to a gigabyte. Raises
    ValueError if the bytes are not a packed state or exceed the limit.
    """
    if not data.startswith(MAGIC):
        raise ValueError("these bytes are no packed state of this version")
    try:
        return _layer(_decompressed(memoryview(data)[len(MAGIC) :], limit), limit)
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"a damaged state: {error}") from None


def _decompressed(data: memoryview, limit: int | None) -> bytes:
    try:
        return decompressed(data, sys.maxsize if limit is None else limit, ZLIB)
    except TooLarge:
        raise ValueError(f"the state has more than {limit} bytes") from None
    except ValueError as error:
        raise ValueError(f"a damaged state: {error}") from None


def _layer(body: bytes, limit: int | None) -> Layer:
    codes, at = _codes(body)
    code_bytes = 0
    accounts: dict[bytes, dict[str, object]] = {}
    while at < len(body):
        address, balance, nonce, code, count = _HEAD.unpack_from(body, at)
        at += _HEAD.size
        code_bytes += len(codes[code])
        if limit is not None and code_bytes > limit:
            raise ValueError(f"the code of all accounts has more than {limit} bytes")
        slots = _SLOT.iter_unpack(body[at : at + count * _SLOT.size])
        accounts[address] = {
            "balance": int.from_bytes(balance, "big"),
            "nonce": nonce,
            "code": codes[code],
            "storage": {int.from_bytes(k, "big"): int.from_bytes(v, "big") for k, v in slots},
        }
        at += count * _SLOT.size
    return Layer.of(accounts)


def _codes(body: bytes) -> tuple[list[bytes], int]:
    """Returns the codes and the offset of the accounts."""
    (count,) = struct.unpack_from(">I", body)
    at, codes = 4, []
    for _ in range(count):
        (size,) = struct.unpack_from(">I", body, at)
        at += 4
        codes.append(body[at : at + size])
        at += size
    return codes, at
