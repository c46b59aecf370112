"""Contract interfaces: encodes calls, and decodes answers, reverts and logs, by their JSON ABI.

Addresses go in as 20 bytes or 0x text and come out as lower-case 0x text, ``bytes`` as bytes,
numbers as int. The words themselves are eth-abi's work.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError, EncodingError
from msgspec import Struct

from fastevm.core.primitives.keccak import keccak256


class AbiError(ValueError):
    """A name that the interface does not have, or arguments that do not fit it."""


class Decoded(Struct, frozen=True):
    """A decoded revert or log: its name and its arguments by name, in the order of declaration."""

    name: str
    arguments: Mapping[str, Any]


class Entry(Struct, frozen=True, dict=True):
    """One function, event, error or constructor."""

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
        """32 bytes: topic 0 of an event; the selector is its first four."""
        return keccak256(self.signature.encode())

    @property
    def selector(self) -> bytes:
        return self.hash[:4]

    def words(self, arguments: Sequence[Any]) -> bytes:
        """ABI encoding of the arguments. Raises AbiError."""
        if len(arguments) != len(self.inputs):
            raise AbiError(f"{self.signature} takes {len(self.inputs)} arguments")
        try:
            return encode(self.types, arguments)
        except (EncodingError, ValueError) as error:
            raise AbiError(f"{self.signature}: {error}") from None

    def read_log(self, topics: Sequence[bytes], data: bytes) -> Decoded | None:
        """The arguments of a log of this event; None if it is laid out otherwise."""
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


# What every contract may revert with, declared or not.
BUILT_IN_ERRORS = (
    Entry("error", "Error", (("reason", "string", False),), ()),
    Entry("error", "Panic", (("code", "uint256", False),), ()),
)


def _type(told: Mapping[str, Any]) -> str:
    """A type as signatures have it: a struct is its members in parentheses."""
    kind: str = told["type"]
    if not kind.startswith("tuple"):
        return kind
    return f"({','.join(_type(one) for one in told['components'])})" + kind.removeprefix("tuple")


class Abi:
    """An interface, from the list that compilers print."""

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
        """The entry of that kind by name or full signature; ``count`` of arguments tells overloads.

        Raises AbiError where none or several fit.
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
            raise AbiError(f"{name} is one of {', '.join(entry.signature for entry in found)}")
        raise AbiError(f"no {kind} {name}" + ("" if count is None else f" of {count} arguments"))

    def selector(self, function: str) -> bytes:
        """4 bytes."""
        return self.entry("function", function).selector

    def topic(self, event: str) -> bytes:
        """32 bytes, topic 0 of its logs."""
        return self.entry("event", event).hash

    def encode(self, function: str, *arguments: Any) -> bytes:
        """Call data. Raises AbiError."""
        entry = self.entry("function", function, len(arguments))
        return entry.selector + entry.words(arguments)

    def decode(self, function: str, output: bytes) -> Any:
        """What a call gave: one value, or a tuple of several. Raises AbiError."""
        entry = self.entry("function", function)
        try:
            values = decode(entry.outputs, output)
        except DecodingError as error:
            raise AbiError(f"{entry.signature}: {error}") from None
        return values[0] if len(values) == 1 else values

    def decode_error(self, output: bytes) -> Decoded | None:
        """The reason in revert data; None if it is empty or not one of this interface.

        What old compilers leave in the padding of a text is passed over.
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
        """The name of the error with a selector; None if this interface has none."""
        found = (one.name for one in self.entries if one.kind == "error")
        return next(
            (name for name in found if self.entry("error", name).selector == selector), None
        )

    def decode_log(self, topics: Sequence[bytes], data: bytes) -> Decoded | None:
        """The event of a log; None if it is not one of this interface."""
        for entry in self.entries:
            if entry.kind == "event" and (read := entry.read_log(topics, data)) is not None:
                return read
        return None
