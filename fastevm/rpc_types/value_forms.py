"""The forms in which callers write objects, and the errors of each form.

``GETH``: the JSON of JSON-RPC, read as strictly as in go-ethereum. Errors have go-ethereum's struct
names, because clients match on them. Unknown members are ignored. ``STRICT``: like ``GETH``, but an
unknown member of an override is an error. ``NATIVE``: values of Python programs, which are hex text
or ints and bytes. Unknown members are errors, and errors name the member.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fastevm.core.primitives.suggestion import nearest
from fastevm.rpc_types.native_values import address_of, bytes_of, quantity_of, uint64_of, word_of
from fastevm.rpc_types.quantity import (
    U256_DIGITS,
    DecodeError,
    decode_address,
    decode_bool,
    decode_bytes,
    decode_hash,
    decode_uint64,
    decode_uint256,
    object_fault,
)


class FieldPath(NamedTuple):
    """The position of a value: go-ethereum's struct field, and the name of the member."""

    field: str
    name: str


Table = dict[str, tuple[str, str, FieldPath]]  # member name -> (field of the value, kind, path)


class Form(NamedTuple):
    """One reader for each kind of value. All readers raise ValueError.

    ``word``: reads 32 bytes as a number. ``signature_word``: reads r or s, which signers also write
    as 32 bytes. ``object`` and ``array`` check the JSON type; their last argument is go-ethereum's
    type name. ``refuses_unknown``: unknown members are errors. ``refuses_unknown_overrides``:
    unknown members of overrides are errors.
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
    refuses_unknown: bool = False
    refuses_unknown_overrides: bool = False


def _geth_word(value: Any, path: FieldPath) -> int:
    return int.from_bytes(decode_hash(value, field=path.field), "big")


def _geth_signature_word(value: Any, path: FieldPath) -> int:
    if isinstance(value, str) and len(value) == 2 + U256_DIGITS:
        return _geth_word(value, path)
    return decode_uint256(value, field=path.field)


def _geth_object(value: Any, path: FieldPath, kind: str) -> Mapping[Any, Any]:
    if not isinstance(value, dict):
        raise object_fault(value, kind, path.field)
    return value


def _geth_array(value: Any, path: FieldPath) -> Sequence[Any]:
    if not isinstance(value, list):
        raise object_fault(value, "array", path.field)
    return value


GETH: Final = Form(
    uint64=lambda value, path: decode_uint64(value, field=path.field),
    uint256=lambda value, path: decode_uint256(value, field=path.field),
    address=lambda value, path: decode_address(value, field=path.field),
    hash=lambda value, path: decode_hash(value, field=path.field),
    data=lambda value, path: decode_bytes(value, field=path.field),
    word=_geth_word,
    signature_word=_geth_signature_word,
    flag=lambda value, path: decode_bool(value, field=path.field),
    object=_geth_object,
    array=_geth_array,
)
STRICT: Final = GETH._replace(refuses_unknown_overrides=True)


def _native_object(value: Any, path: FieldPath, kind: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{path.name}: expected an object, found {type(value).__name__}")
    return value


def _native_array(value: Any, path: FieldPath) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"{path.name}: expected an array, found {type(value).__name__}")
    return value


def _named(read: Callable[[Any, str], Any]) -> Callable[[Any, FieldPath], Any]:
    return lambda value, path: read(value, path.name)


NATIVE: Final = Form(
    uint64=_named(uint64_of),
    uint256=_named(quantity_of),
    address=_named(address_of),
    hash=_named(bytes_of),
    data=_named(bytes_of),
    word=_named(word_of),
    signature_word=_named(quantity_of),
    flag=lambda value, path: bool(value),
    object=_native_object,
    array=_native_array,
    refuses_unknown=True,
    refuses_unknown_overrides=True,
)


def table_of(struct: str, members: dict[str, tuple[str, str]], prefix: str = "") -> Table:
    """Returns the table with which an object is read.

    ``members``: by member name, the field of the Python value and the kind of reader. ``struct``:
    go-ethereum's name of the object, for errors.
    """
    return {
        member: (field, kind, FieldPath(f"{struct}.{member}", prefix + member))
        for member, (field, kind) in members.items()
    }


def members_of(given: Mapping[str, Any], table: Table, form: Form) -> dict[str, Any]:
    """Reads the members of the table that are not null."""
    fields: dict[str, Any] = {}
    for member, (field, kind, path) in table.items():
        value = given.get(member)
        if value is not None:
            fields[field] = getattr(form, kind)(value, path)
    return fields


def all_members_of(given: Mapping[str, Any], table: Table, form: Form) -> dict[str, Any]:
    """Reads all members of the table. An absent member is an error."""
    return {
        field: getattr(form, kind)(given.get(member), path)
        for member, (field, kind, path) in table.items()
    }


def object_of(
    value: Any, path: FieldPath, struct: str, known: frozenset[str], form: Form
) -> Mapping[str, Any]:
    """Returns ``value`` if it is an object.

    Raises DecodeError if it is not an object, or if it has an unknown member that the form refuses.
    """
    given = form.object(value, path, struct)
    if form.refuses_unknown:
        refuse_unknown(given, known, path.name)
    return given


def refuse_unknown(given: Mapping[str, Any], known: frozenset[str], name: str) -> None:
    """Raises DecodeError for an unknown member, with the nearest known name."""
    for member in given:
        if member not in known:
            near = nearest(str(member), sorted(known))
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
            raise DecodeError(f"{name}: there is no member {member!r}: {hint}")
