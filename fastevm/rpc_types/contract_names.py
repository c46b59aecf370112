"""Names of a contract's calls, events and revert reasons, and its console output.

Names come from ABI files and from ``signatures.txt``; those in ABI files take precedence.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc_types.contract_abi import (
    AbiError,
    Entry,
    Parameter,
    decode,
    entry_of_json,
    parse_entry,
    single,
    texts_of,
)

FILES_LIMIT: Final = 10_000  # most ABI files per directory
FILE_SIZE: Final = 32 * 1024 * 1024  # most bytes per file
SHOWN_BYTES: Final = 64  # bytes shown of data without a known name
SELECTOR: Final = 4

PANICS: Final = {
    0x00: "generic panic",
    0x01: "assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division or modulo by zero",
    0x21: "value out of range of an enum",
    0x22: "wrongly encoded storage byte array",
    0x31: "pop() of an empty array",
    0x32: "array index out of bounds",
    0x41: "too much memory allocated, or an array too large",
    0x51: "call of a function variable that is not set",
}
"""Meanings of ``Panic(uint256)`` codes. Source: the Solidity documentation, "Panic via assert"."""


class Names:
    """Finds functions and errors by selector, and events by topic 0 and number of topics.

    ``more()`` is called for each unknown name. It returns the entries that were found since its
    last call, for example in new ABI files.
    """

    def __init__(
        self, entries: Iterable[Entry] = (), more: Callable[[], Iterable[Entry]] = tuple
    ) -> None:
        self._more = more
        self._called: dict[bytes, Entry] = {}
        self._errors: dict[bytes, Entry] = {}
        self._events: dict[tuple[bytes, int], Entry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Adds an entry, or replaces the entry with the same hash."""
        if entry.kind == "event":
            self._events[entry.hash, entry.indexed] = entry
        else:
            table = self._called if entry.kind == "function" else self._errors
            table[entry.hash[:SELECTOR]] = entry

    def call(self, data: bytes) -> str | None:
        """Returns ``name(input: value, ...)``, or None for a call without a known selector."""
        return _named(self._known(self._called, data[:SELECTOR]), data)

    def event(self, topics: Sequence[bytes], data: bytes) -> str | None:
        """Returns ``name(input: value, ...)`` for a log, or None if the event is unknown.

        An indexed input of a dynamic type is shown as its hash.
        """
        entry = self._known(self._events, (topics[0], len(topics) - 1)) if topics else None
        if entry is None:
            return None
        try:
            unindexed = iter(decode([item for item in entry.inputs if not item.indexed], data))
            shown, values, hashed = [], [], iter(topics[1:])
            for item in entry.inputs:
                if not item.indexed:
                    shown.append(item)
                    values.append(next(unindexed))
                    continue
                topic = next(hashed)
                is_hash = (
                    item.size() != len(topic) or item.element is not None or bool(item.members)
                )
                kind = "bytes32" if is_hash else item.type
                shown.append(Parameter(kind, item.name))
                values.append(single(kind, topic))
        except AbiError:
            return None
        return f"{entry.name}({texts_of(shown, values)})"

    def revert(self, data: bytes) -> str:
        """Returns why a call reverted: the text of ``Error``, the meaning of ``Panic``, or a custom
        error.
        """
        if not data:
            return "no reason given"
        try:
            if data.startswith(ERROR):
                return str(decode([Parameter("string")], data[SELECTOR:])[0])
            if data.startswith(PANIC):
                code = int(decode([Parameter("uint256")], data[SELECTOR:])[0])
                return f"panic 0x{code:02x}: {PANICS.get(code, 'unknown code')}"
        except AbiError:
            return shortened(data)
        return _named(self._known(self._errors, data[:SELECTOR]), data) or shortened(data)

    def _known(self, table: dict[Any, Entry], key: Any) -> Entry | None:
        """Returns the entry for ``key``, or None if ``more()`` does not return it either."""
        if key not in table:
            for entry in self._more():
                self.add(entry)
        return table.get(key)


ERROR: Final = bytes.fromhex("08c379a0")
PANIC: Final = bytes.fromhex("4e487b71")


def _named(entry: Entry | None, data: bytes) -> str | None:
    if entry is None:
        return None
    try:
        return f"{entry.name}({texts_of(entry.inputs, decode(entry.inputs, data[SELECTOR:]))})"
    except AbiError:
        return f"{entry.name}({shortened(data[SELECTOR:])})"


def shortened(data: bytes) -> str:
    """Returns bytes in hex. Truncates the hex if there are many bytes."""
    if len(data) <= SHOWN_BYTES:
        return hex_bytes(data)
    return f"{hex_bytes(data[:SHOWN_BYTES])}... ({len(data)} bytes)"


def common_entries() -> Iterator[Entry]:
    """Returns the names of common signatures: tokens, exchanges, multicalls, permits, roles."""
    text = Path(__file__).with_name("signatures.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield parse_entry(line)


def entries_of(abi: Iterable[Any]) -> Iterator[Entry]:
    """Yields the entries of a JSON ABI, except invalid ones."""
    for item in abi:
        if isinstance(item, dict):
            try:
                entry = entry_of_json(item)
            except AbiError:
                continue
            if entry is not None:
                yield entry
