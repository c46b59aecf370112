"""Decodes the contract ABI: signatures of functions, events and errors, and values.

Source: the Solidity contract ABI specification. Every size in the data is checked. The number of
values and of bytes is limited because a few offsets can encode any number of them.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from fastevm.core.primitives.hex import checksum_address
from fastevm.core.primitives.keccak import keccak256

WORD: Final = 32
VALUES_LIMIT: Final = 1_000  # most values per decoding
READS: Final = 4  # most reads per byte of data; several offsets may refer to the same bytes
DEPTH_LIMIT: Final = 16  # most levels of nested arrays and tuples
TEXT_LIMIT: Final = 10_000  # most characters of a signature

ARRAY: Final = re.compile(r"(.*)\[(\d{0,6})\]\Z", re.S)
NAME: Final = re.compile(r"[A-Za-z_$][\w$]*\Z", re.A)
NUMBER: Final = re.compile(r"(u?)int(\d{0,3})\Z", re.A)
FIXED_BYTES: Final = re.compile(r"bytes(\d{1,2})\Z", re.A)
NOT_NAMES: Final = frozenset(("indexed", "memory", "calldata", "storage", "payable"))


class AbiError(ValueError):
    """An invalid signature text, or data that does not match a signature."""


class Parameter(Struct, frozen=True):
    """A parameter of a function, event or error, or a member of a tuple.

    ``type``: the canonical type. ``members``: the members of the tuple if the type is a tuple or an
    array of tuples.
    """

    type: str
    name: str = ""
    members: tuple["Parameter", ...] = ()
    indexed: bool = False

    @property
    def element(self) -> tuple["Parameter", int | None] | None:
        """The element type and the length of an array, or None if the type is not an array.

        The length of a dynamic array is None.
        """
        found = ARRAY.match(self.type)
        if found is None:
            return None
        return Parameter(found[1], "", self.members), int(found[2]) if found[2] else None

    def size(self) -> int | None:
        """Returns the size in bytes of the type in the head of the encoding.

        Returns None for a dynamic type, whose head is an offset.
        """
        array = self.element
        if array is not None:
            item = array[0].size()
            return None if array[1] is None or item is None else item * array[1]
        if self.type in ("string", "bytes"):
            return None
        if not self.type.startswith("("):
            return WORD
        sizes = [member.size() for member in self.members]
        return None if None in sizes else sum(size for size in sizes if size is not None)


class Entry(Struct, frozen=True, dict=True):
    """A function, an event or an error. ``kind`` says which."""

    kind: str
    name: str
    inputs: tuple[Parameter, ...]

    @cached_property
    def signature(self) -> str:
        """The canonical signature, from which the hash is computed."""
        return f"{self.name}({','.join(one.type for one in self.inputs)})"

    @cached_property
    def hash(self) -> bytes:
        """The 32-byte signature hash: topic 0 of an event; its first 4 bytes are a selector."""
        return keccak256(self.signature.encode())

    @property
    def indexed(self) -> int:
        """The number of indexed inputs of an event."""
        return sum(item.indexed for item in self.inputs)


def parse_entry(text: str) -> Entry:
    """Parses ``function name(type name, ...)`` and its modifiers. Raises AbiError if invalid."""
    kind, _, rest = text.strip().partition(" ")
    name, opening, inner = rest.strip().partition("(")
    if kind not in ("function", "event", "error") or not opening or not NAME.match(name.strip()):
        raise AbiError(f"no signature of a function, an event or an error: {text[:80]!r}")
    return Entry(kind, name.strip(), parse_types("(" + inner))


def parse_types(text: str) -> tuple[Parameter, ...]:
    """Parses ``(type name, ...)`` and ignores the rest of the text. Raises AbiError."""
    if len(text) > TEXT_LIMIT:
        raise AbiError(f"a signature of more than {TEXT_LIMIT} characters")
    return _parse_tuple(text.strip(), 0)[0]


def _parse_tuple(text: str, depth: int) -> tuple[tuple[Parameter, ...], str]:
    """Parses the tuple at the start of ``text``. Returns its members and the remaining text."""
    if not text.startswith("(") or depth > DEPTH_LIMIT:
        raise AbiError(f"expected '(': {text[:80]!r}")
    rest = text[1:].lstrip()
    if rest.startswith(")"):
        return (), rest[1:]
    found = []
    while True:
        item, rest = _parse_parameter(rest.lstrip(), depth)
        found.append(item)
        if rest.startswith(")"):
            return tuple(found), rest[1:]
        if not rest.startswith(","):
            raise AbiError(f"expected ',' or ')': {rest[:80]!r}")
        rest = rest[1:]


def _parse_parameter(text: str, depth: int) -> tuple[Parameter, str]:
    """Parses a type and a name at the start of ``text``. Returns them and the remaining text."""
    members: tuple[Parameter, ...] = ()
    base = ""
    text = text.removeprefix("tuple")
    if text.startswith("("):
        members, text = _parse_tuple(text, depth + 1)
        base = tuple_type(members)
    end = next((position for position, letter in enumerate(text) if letter in ",)"), None)
    if end is None:
        raise AbiError("expected ',' or ')' at the end")
    words = text[:end].split()
    if words and (not base or words[0].startswith("[")):
        base += words.pop(0)
    names = [word for word in words if word not in NOT_NAMES]
    name = names[-1] if names else ""
    return Parameter(canonical(base), name, members, "indexed" in words), text[end:]


def entry_of_json(found: Mapping[str, Any]) -> Entry | None:
    """Reads an entry of a JSON ABI. Returns None for kinds without a name. Raises AbiError."""
    kind = found.get("type", "function")
    if kind not in ("function", "event", "error"):
        return None
    name = found.get("name")
    if not isinstance(name, str) or not NAME.match(name):
        raise AbiError(f"no name of a {kind}: {str(name)[:80]!r}")
    return Entry(kind, name, _parameters_of_json(found.get("inputs"), 0))


def _parameters_of_json(found: Any, depth: int) -> tuple[Parameter, ...]:
    if not isinstance(found, list) or depth > DEPTH_LIMIT:
        raise AbiError("inputs: expected a list")
    made = []
    for item in found:
        if not isinstance(item, Mapping) or not isinstance(item.get("type"), str):
            raise AbiError("inputs: expected objects with a type")
        stated = item["type"]
        members: tuple[Parameter, ...] = ()
        if stated.startswith("tuple"):
            members = _parameters_of_json(item.get("components"), depth + 1)
            stated = tuple_type(members) + stated[len("tuple") :]
        name = item.get("name")
        made.append(
            Parameter(
                canonical(stated),
                name if isinstance(name, str) and NAME.match(name) else "",
                members,
                item.get("indexed") is True,
            )
        )
    return tuple(made)


def tuple_type(members: Sequence[Parameter]) -> str:
    """Returns the type of a tuple."""
    return f"({','.join(one.type for one in members)})"


def canonical(stated: str) -> str:
    """Returns the canonical type. Raises AbiError for an invalid type."""
    base, dimensions = stated, ""
    while (found := ARRAY.match(base)) is not None:
        base, dimensions = found[1], f"[{found[2]}]{dimensions}"
        if dimensions.count("[") > DEPTH_LIMIT:
            raise AbiError(f"a type of more than {DEPTH_LIMIT} arrays")
    if base in ("uint", "int"):
        base += "256"
    number, fixed = NUMBER.match(base), FIXED_BYTES.match(base)
    known = (
        base in ("address", "bool", "string", "bytes", "function")
        or base.startswith("(")
        or (number is not None and int(number[2]) in range(8, 257, 8))
        or (fixed is not None and 1 <= int(fixed[1]) <= WORD)
    )
    if not known:
        raise AbiError(f"unknown type {stated[:80]!r}")
    return base + dimensions


# --- values ---------------------------------------------------------------------------------------


def decode(inputs: Sequence[Parameter], data: bytes) -> list[Any]:
    """Decodes the values of ``inputs`` from ABI-encoded ``data``. Raises AbiError.

    Numbers are int, addresses and bytes are bytes, arrays and tuples are lists.
    """
    return Decoder(data).members(inputs, 0)


class Decoder:
    """Decodes one encoding. Reads at most ``VALUES_LIMIT`` values and ``READS`` times its bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = VALUES_LIMIT
        self.bytes_left = READS * len(data)

    def members(self, inputs: Sequence[Parameter], start: int) -> list[Any]:
        """Returns the values of a tuple whose encoding begins at ``start``."""
        values, position = [], start
        for item in inputs:
            size = item.size()
            if size is None:
                values.append(self.value(item, start + self.number(position)))
                position += WORD
            else:
                values.append(self.value(item, position))
                position += size
        return values

    def value(self, parameter: Parameter, position: int) -> Any:
        """Decodes the value whose head is at byte offset ``position``."""
        self.left -= 1
        if self.left < 0:
            raise AbiError(f"more than {VALUES_LIMIT} values")
        array = parameter.element
        if array is not None:
            element, count = array
            if count is None:
                count, position = self.number(position), position + WORD
            if count > self.left:
                raise AbiError(f"more than {VALUES_LIMIT} values")
            return self.members([element] * count, position)
        if parameter.members or parameter.type == "()":
            return self.members(parameter.members, position)
        if parameter.type in ("string", "bytes"):
            content = self.piece(position + WORD, self.number(position))
            return content if parameter.type == "bytes" else content.decode(errors="replace")
        return single(parameter.type, self.piece(position, WORD))

    def number(self, position: int) -> int:
        """Reads a length or an offset."""
        return int.from_bytes(self.piece(position, WORD))

    def piece(self, position: int, size: int) -> bytes:
        """Returns bytes of the data."""
        if position + size > len(self.data):
            raise AbiError("the data ends early")
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise AbiError("the data refers to itself too often")
        return self.data[position : position + size]


def single(kind: str, word: bytes) -> Any:
    """Decodes an elementary type from 32 bytes."""
    number = int.from_bytes(word)
    if kind == "bool":
        return bool(number)
    if kind == "address":
        return word[12:]
    if kind == "function":
        return word[:24]
    if kind.startswith("bytes"):
        return word[: int(kind[5:])]
    if kind.startswith("int"):
        return int.from_bytes(word, signed=True)
    return number


def text_of(parameter: Parameter, value: Any) -> str:
    """Formats a value for display."""
    array = parameter.element
    if array is not None:
        return f"[{', '.join(text_of(array[0], each) for each in value)}]"
    if isinstance(value, list):
        return f"({texts_of(parameter.members, value)})"
    if parameter.type == "address":
        return checksum_address(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}"'
    return str(value)


def texts_of(inputs: Sequence[Parameter], values: Sequence[Any]) -> str:
    """Formats values with the names of their inputs, separated by commas."""
    return ", ".join(
        f"{item.name}: {text_of(item, value)}" if item.name else text_of(item, value)
        for item, value in zip(inputs, values, strict=True)
    )
