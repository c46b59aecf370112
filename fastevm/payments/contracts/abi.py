"""Contract ABIs: encodes calls; decodes outputs, reverts and logs.

Addresses are accepted as 20 bytes or 0x-hex and returned as lower-case 0x-hex, ``bytes`` as bytes,
numbers as int. eth-abi encodes and decodes the values.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError, EncodingError
from msgspec import Struct

from fastevm.core.primitives.keccak import keccak256


class AbiError(ValueError):
    """The ABI does not have this name, or the arguments do not match the ABI."""


class Decoded(Struct, frozen=True):
    """A decoded revert or log: the name, and the arguments by name in the order of declaration."""

    name: str
    arguments: Mapping[str, Any]


class Entry(Struct, frozen=True, dict=True):
    """A function, event, error or constructor of an ABI."""

    kind: str
    name: str
    inputs: tuple[tuple[str, str, bool], ...]  # name, type, whether indexed
    outputs: tuple[str, ...]

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(kind for _, kind, _ in self.inputs)

    @property
    def signature(self) -> str:
        return f"{self.name}({','.join(self.types)})"

    @cached_property
    def hash(self) -> bytes:
        """The hash of the signature: topic 0 of an event. Its first 4 bytes are the selector."""
        return keccak256(self.signature.encode())

    @property
    def selector(self) -> bytes:
        return self.hash[:4]

    def words(self, arguments: Sequence[Any]) -> bytes:
        """Returns the ABI-encoded arguments. Raises AbiError."""
        if len(arguments) != len(self.inputs):
            raise AbiError(f"{self.signature} takes {len(self.inputs)} arguments")
        try:
            return encode(self.types, arguments)
        except (EncodingError, ValueError) as error:
            raise AbiError(f"{self.signature}: {error}") from None

    def read_log(self, topics: Sequence[bytes], data: bytes) -> Decoded | None:
        """Decodes a log of this event. Returns None for logs of other events.

        Also returns None if the log does not have the indexed arguments that this ABI declares.
        """
        indexed = [kind for _, kind, is_indexed in self.inputs if is_indexed]
        unindexed = [kind for _, kind, is_indexed in self.inputs if not is_indexed]
        if not topics or topics[0] != self.hash or len(topics) != 1 + len(indexed):
            return None
        try:
            found = iter(decode(indexed, b"".join(topics[1:])))
            rest = iter(decode(unindexed, data))
        except DecodingError:
            return None
        return Decoded(
            self.name,
            {name: next(found if is_indexed else rest) for name, _, is_indexed in self.inputs},
        )


# The built-in errors of Solidity, which no ABI declares.
BUILT_IN_ERRORS = (
    Entry("error", "Error", (("reason", "string", False),), ()),
    Entry("error", "Panic", (("code", "uint256", False),), ()),
)


def _type(parameter: Mapping[str, Any]) -> str:
    """Returns the canonical type; a struct is its members in parentheses."""
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    return (
        f"({','.join(_type(component) for component in parameter['components'])})"
        + kind.removeprefix("tuple")
    )


class Abi:
    """A contract's ABI, created from the JSON list of its entries."""

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        self.entries = tuple(
            Entry(
                entry["type"],
                entry.get("name", ""),
                tuple((i["name"], _type(i), i.get("indexed", False)) for i in entry["inputs"]),
                tuple(_type(output) for output in entry.get("outputs", ())),
            )
            for entry in entries
            if "inputs" in entry
        )

    def entry(self, kind: str, name: str, count: int | None = None) -> Entry:
        """Finds an entry by kind and by name or signature.

        ``count`` is the number of arguments and selects an overload. Raises AbiError if no entry or
        several entries match.
        """
        found = [
            entry
            for entry in self.entries
            if entry.kind == kind
            and name in (entry.name, entry.signature)
            and (count is None or len(entry.inputs) == count)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise AbiError(f"{name} is ambiguous: {', '.join(entry.signature for entry in found)}")
        raise AbiError(f"no {kind} {name}" + ("" if count is None else f" of {count} arguments"))

    def selector(self, function: str) -> bytes:
        """Returns a function's 4-byte selector."""
        return self.entry("function", function).selector

    def topic(self, event: str) -> bytes:
        """Returns an event's topic 0 (32 bytes)."""
        return self.entry("event", event).hash

    def encode(self, function: str, *arguments: Any) -> bytes:
        """Returns call data. Raises AbiError."""
        entry = self.entry("function", function, len(arguments))
        return entry.selector + entry.words(arguments)

    def decode(self, function: str, output: bytes) -> Any:
        """Decodes a call's output: one value, or a tuple of several. Raises AbiError."""
        entry = self.entry("function", function)
        try:
            values = decode(entry.outputs, output)
        except DecodingError as error:
            raise AbiError(f"{entry.signature}: {error}") from None
        return values[0] if len(values) == 1 else values

    def decode_error(self, output: bytes) -> Decoded | None:
        """Decodes revert data; None if it is empty or not an error of this ABI.

        Ignores nonzero padding, which old compilers leave after a text.
        """
        for entry in (*BUILT_IN_ERRORS, *self.entries):
            if entry.kind != "error" or entry.selector != output[:4]:
                continue
            try:
                values = decode(entry.types, output[4:], strict=False)
            except (DecodingError, UnicodeDecodeError):
                return None
            return Decoded(
                entry.name, {i[0]: value for i, value in zip(entry.inputs, values, strict=True)}
            )
        return None

    def error_name(self, selector: bytes) -> str | None:
        """Returns the name of the error with this selector; None if the ABI has none."""
        found = (entry.name for entry in self.entries if entry.kind == "error")
        return next(
            (name for name in found if self.entry("error", name).selector == selector), None
        )

    def decode_log(self, topics: Sequence[bytes], data: bytes) -> Decoded | None:
        """Decodes a log; None if it is no event of this ABI."""
        for entry in self.entries:
            if entry.kind == "event" and (read := entry.read_log(topics, data)) is not None:
                return read
        return None
