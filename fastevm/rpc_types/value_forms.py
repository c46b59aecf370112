"""Two forms in which a caller writes values, and how each names a fault.

``GETH``: the JSON of JSON-RPC, as strict as go-ethereum, whose struct names are in the errors that
clients know. ``NATIVE``: what Python programs pass, hex text or ints and bytes as they are; errors
name the member.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fastevm.rpc_types.native_values import address_of, bytes_of, quantity_of, uint64_of, word_of
from fastevm.rpc_types.quantity import (
    U256_DIGITS,
    decode_address,
    decode_bool,
    decode_bytes,
    decode_hash,
    decode_uint64,
    decode_uint256,
    object_fault,
)


class FieldPath(NamedTuple):
    """Where a value stands: the field of a struct in go-ethereum, and the member's own name."""

    field: str
    name: str


class Form(NamedTuple):
    """One reader for each kind of value; all raise ValueError.

    ``word``: 32 bytes as a number; ``signature_word``: r or s, which signers also print as 32
    bytes. ``object`` and ``array`` check the kind; their last argument is go-ethereum's type.
    """

    uint64: Callable[[Any, FieldPath], int]
    uint256: Callable[[Any, FieldPath], int]
    address: Callable[[Any, FieldPath], bytes]
    hash: Callable[[Any, FieldPath], bytes]
    data: Callable[[Any, FieldPath], bytes]
    word: Callable[[Any, FieldPath], int]
    signature_word: Callable[[Any, FieldPath], int]
    flag: Callable[[Any, FieldPath], bool]
    object: Callable[[Any, FieldPath, str], Mapping[Any, Any]]
    array: Callable[[Any, FieldPath], Sequence[Any]]


def _geth_word(value: Any, place: FieldPath) -> int:
    return int.from_bytes(decode_hash(value, field=place.field), "big")


def _geth_signature_word(value: Any, place: FieldPath) -> int:
    if isinstance(value, str) and len(value) == 2 + U256_DIGITS:
        return _geth_word(value, place)
    return decode_uint256(value, field=place.field)


def _geth_object(value: Any, place: FieldPath, kind: str) -> Mapping[Any, Any]:
    if not isinstance(value, dict):
        raise object_fault(value, kind, place.field)
    return value


def _geth_array(value: Any, place: FieldPath) -> Sequence[Any]:
    if not isinstance(value, list):
        raise object_fault(value, "array", place.field)
    return value


GETH: Final = Form(
    uint64=lambda value, place: decode_uint64(value, field=place.field),
    uint256=lambda value, place: decode_uint256(value, field=place.field),
    address=lambda value, place: decode_address(value, field=place.field),
    hash=lambda value, place: decode_hash(value, field=place.field),
    data=lambda value, place: decode_bytes(value, field=place.field),
    word=_geth_word,
    signature_word=_geth_signature_word,
    flag=lambda value, place: decode_bool(value, field=place.field),
    object=_geth_object,
    array=_geth_array,
)


def _native_object(value: Any, place: FieldPath, kind: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{place.name}: expected an object, found {type(value).__name__}")
    return value


def _native_array(value: Any, place: FieldPath) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{place.name}: expected an array, found {type(value).__name__}")
    return value


def _named(read: Callable[[Any, str], Any]) -> Callable[[Any, FieldPath], Any]:
    return lambda value, place: read(value, place.name)


NATIVE: Final = Form(
    uint64=_named(uint64_of),
    uint256=_named(quantity_of),
    address=_named(address_of),
    hash=_named(bytes_of),
    data=_named(bytes_of),
    word=_named(word_of),
    signature_word=_named(quantity_of),
    flag=lambda value, place: bool(value),
    object=_native_object,
    array=_native_array,
)
