"""Whole states as bytes, for other processes or files."""

import struct
import zlib
from typing import Final

from fastevm.state.layer import Layer

MAGIC: Final = b"fastevm-state-1\n"
_HEAD: Final = struct.Struct(">20s32sQII")  # address, balance, nonce, code index, slots
_SLOT: Final = struct.Struct(">32s32s")
_LEVEL: Final = 1  # higher levels gain little: states are mostly hashes and small numbers


def pack_layer(layer: Layer) -> bytes:
    """All accounts, codes and slots of a layer; the same bytes for the same state."""
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


def unpack_layer(data: bytes) -> Layer:
    """The layer that ``pack_layer`` packed; ValueError for other bytes."""
    if not data.startswith(MAGIC):
        raise ValueError("these bytes are no packed state of this version")
    try:
        body = zlib.decompress(data[len(MAGIC) :])
        return _layer(body)
    except (zlib.error, struct.error, IndexError) as error:
        raise ValueError(f"a damaged state: {error}") from None


def _layer(body: bytes) -> Layer:
    codes, at = _codes(body)
    accounts: dict[bytes, dict[str, object]] = {}
    while at < len(body):
        address, balance, nonce, code, count = _HEAD.unpack_from(body, at)
        at += _HEAD.size
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
    """The codes, and the offset of the accounts."""
    (count,) = struct.unpack_from(">I", body)
    at, codes = 4, []
    for _ in range(count):
        (size,) = struct.unpack_from(">I", body, at)
        at += 4
        codes.append(body[at : at + size])
        at += size
    return codes, at
