"""Encodes and decodes the ABI, with the checks of alloy's validating decoder, which Base uses."""

from __future__ import annotations

from functools import cache
from typing import Any

from eth_hash.auto import keccak

from .journal import Revert

WORD = 32
MOST_OFFSET = 2**64 - 1
OVERRUN = "ABI decoding failed: buffer overrun while deserializing"
# Before alloy reads an array, it reserves memory for all its elements (`vec_try_with_capacity` in
# abi/token.rs): 32 bytes per word, 16 per dynamic value. Rust reports a capacity overflow from 2^63
# bytes. No allocator provides 1 TiB (2^40).
MOST_RESERVED, MOST_MEMORY = 2**63, 2**40
NO_CAPACITY = (
    "memory allocation failed because the computed capacity exceeded the collection's maximum"
)
NO_MEMORY = "memory allocation failed because the memory allocator returned an error"


class DecodeError(Exception):
    """Raised if the arguments do not decode. In Beryl, the text is returned after the selector."""


@cache
def selector(signature: str) -> bytes:
    return keccak(signature.encode())[:4]


@cache
def topic(signature: str) -> bytes:
    return keccak(signature.encode())


@cache
def types_of(signature: str) -> tuple[str, ...]:
    inside = signature[signature.index("(") + 1 : -1]
    return tuple(inside.split(",")) if inside else ()


def word(value: int) -> bytes:
    return value.to_bytes(WORD, "big")


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % WORD)


def is_dynamic(kind: str) -> bool:
    return kind in ("string", "bytes") or kind.endswith("[]")


# Python types of values: bytes for addresses and fixed bytes, UTF-8 bytes for strings, lists for
# arrays.
def encode_one(kind: str, value: Any) -> bytes:
    if kind.endswith("[]"):
        return word(len(value)) + encode([kind[:-2]] * len(value), value)
    if kind in ("string", "bytes"):
        return word(len(value)) + padded(value)
    if kind == "address":
        return bytes(12) + value
    if kind.startswith("bytes"):
        return padded(value)
    return word(int(value))


def encode(kinds: Any, values: Any) -> bytes:
    """Returns the ABI encoding of a tuple's members, without the offset of the tuple itself."""
    parts = [(is_dynamic(k), encode_one(k, v)) for k, v in zip(kinds, values, strict=True)]
    at = sum(WORD if dynamic else len(part) for dynamic, part in parts)
    head, tail = b"", b""
    for dynamic, part in parts:
        if dynamic:
            head += word(at + len(tail))
            tail += part
        else:
            head += part
    return head + tail


def call(signature: str, *values: Any) -> bytes:
    return selector(signature) + encode(types_of(signature), values)


def error(signature: str, *values: Any) -> Revert:
    return Revert(call(signature, *values))


def panic(code: int) -> Revert:
    return error("Panic(uint256)", code)


def take_word(data: bytes, at: int) -> int:
    if at + WORD > len(data):
        raise DecodeError(OVERRUN)
    return int.from_bytes(data[at : at + WORD], "big")


def take_offset(data: bytes, at: int) -> int:
    value = take_word(data, at)
    if value > MOST_OFFSET:
        raise DecodeError(f'type check failed for "offset (usize)" with data: {value:064x}')
    return value


def tokens(kinds: tuple[str, ...], data: bytes) -> list[Any]:
    """Returns the members of a tuple undecoded, as words, bytes and lists.

    Offsets count from the start of ``data``.
    """
    found = []
    for index, kind in enumerate(kinds):
        if is_dynamic(kind):
            offset = take_offset(data, index * WORD)
            if offset > len(data):
                raise DecodeError(OVERRUN)
            found.append(dynamic_token(kind, data[offset:]))
        else:
            found.append(take_word(data, index * WORD))
    return found


def dynamic_token(kind: str, data: bytes) -> Any:
    size = take_offset(data, 0)
    rest = data[WORD:]
    if kind in ("string", "bytes"):
        if size > len(rest):
            raise DecodeError(OVERRUN)
        return rest[:size]
    kind = kind[:-2]
    reserved = size * (16 if is_dynamic(kind) else WORD)
    if reserved >= MOST_RESERVED:
        raise DecodeError(NO_CAPACITY)
    if reserved >= MOST_MEMORY:
        raise DecodeError(NO_MEMORY)
    return tokens((kind,) * min(size, len(rest) // WORD + 1), rest)


def is_valid(kind: str, token: Any, enums: int | None) -> bool:
    if kind.endswith("[]"):
        return all(is_valid(kind[:-2], item, enums) for item in token)
    if kind == "string":
        try:
            token.decode()
        except UnicodeDecodeError:
            return False
        return True
    if kind == "bytes":
        return True
    if kind == "bool":
        return token < 256  # any nonzero last byte means true
    if kind == "address":
        return token < 2**160
    if kind.startswith("bytes"):
        return token % 2 ** (8 * (WORD - int(kind[5:]))) == 0
    if kind == "uint8" and enums is not None:
        return token < enums
    return token < 2 ** int(kind[4:])


def value_of(kind: str, token: Any) -> Any:
    if kind.endswith("[]"):
        return [value_of(kind[:-2], item) for item in token]
    if kind in ("string", "bytes"):
        return token
    if kind == "bool":
        return token != 0
    if kind == "address":
        return token.to_bytes(20, "big")
    if kind.startswith("bytes"):
        return token.to_bytes(WORD, "big")[: int(kind[5:])]
    return token


def raw_encode_one(kind: str, token: Any) -> bytes:
    if kind.endswith("[]"):
        return word(len(token)) + raw_encode((kind[:-2],) * len(token), token)
    if kind in ("string", "bytes"):
        return word(len(token)) + padded(token)
    return word(token)


def raw_encode(kinds: tuple[str, ...], found: list[Any]) -> bytes:
    parts = [(is_dynamic(k), raw_encode_one(k, v)) for k, v in zip(kinds, found, strict=True)]
    at = WORD * len(parts)
    head, tail = b"", b""
    for dynamic, part in parts:
        head += word(at + len(tail)) if dynamic else part
        tail += part if dynamic else b""
    return head + tail


def decode(
    kinds: tuple[str, ...], data: bytes, enums: int | None = None, name: str | None = None
) -> list[Any]:
    """Decodes the members of a tuple.

    ``enums``: if a uint8 is an enum, the number of its values. ``name``: the name of the struct,
    which errors contain instead of the types of its members.
    """
    found = tokens(kinds, data)
    if all(is_valid(k, token, enums) for k, token in zip(kinds, found, strict=True)):
        return [value_of(k, token) for k, token in zip(kinds, found, strict=True)]
    encoded = raw_encode(kinds, found)
    if any(is_dynamic(k) for k in kinds):
        encoded = word(WORD) + encoded
    name = name or f"({','.join(kinds)})"
    raise DecodeError(f'type check failed for "{name}" with data: {encoded.hex()}')
