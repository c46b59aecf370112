"""Source locations of a contract's instructions, from the source maps of compilers."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

PUSH0: Final = 0x5F
PUSH32: Final = 0x7F
HEX: Final = frozenset("0123456789abcdefABCDEF")
SOURCE_LIMIT: Final = 16 * 1024 * 1024  # maximum size of a source file


class SourceLocation(NamedTuple):
    """A source file and a line number, from 1."""

    file: str
    line: int


def instructions(code: bytes) -> Iterator[int]:
    """Yields the pc of every instruction. Treats data after the code as instructions."""
    pc = 0
    while pc < len(code):
        yield pc
        pc += 1 + (code[pc] - PUSH0 if PUSH0 < code[pc] <= PUSH32 else 0)


def locations_of(
    file: str, found: Mapping[str, Any], whole: Mapping[str, Any], root: Path
) -> dict[int, SourceLocation]:
    """Returns the source location of each pc of the runtime code. Empty if there is no source map.

    ``file``: the contract's source file. ``found``: the part of the output or artifact for the
    contract. ``whole``: the complete output. ``root``: the folder in which source files are looked
    up. Vyper's maps contain lines. solc's maps contain byte offsets, so they need the sources.
    """
    deployed = found.get("deployedBytecode") or found.get("evm", {}).get("deployedBytecode") or {}
    if not isinstance(deployed, Mapping):
        deployed = {"object": deployed}
    source_map = found.get("source_map_runtime") or deployed.get("sourceMap")
    if isinstance(source_map, Mapping):  # Vyper: `source_map` would be that of the init code
        locations = source_map.get("pc_pos_map", {}).items()
        return filled(
            {int(pc): SourceLocation(file, location[0]) for pc, location in locations if location}
        )
    text = (
        deployed.get("sourceMap") or found.get("deployedSourceMap") or found.get("srcmap-runtime")
    )
    code = deployed.get("object") or found.get("bin-runtime")
    if not text or not code:
        return {}
    return decoded_source_map(text, code_of(code), texts_of(file, found, whole, root))


def filled(locations: Mapping[int, SourceLocation]) -> dict[int, SourceLocation]:
    """Fills gaps: a pc without a location gets the location of the previous pc."""
    found: dict[int, SourceLocation] = {}
    for pc, after in pairwise([*sorted(locations), max(locations, default=0) + 1]):
        found |= dict.fromkeys(range(pc, after), locations[pc])
    return found


def code_of(code: str) -> bytes:
    """Decodes hex code. Placeholders of unlinked libraries become zeros."""
    digits = code.removeprefix("0x")
    return bytes.fromhex("".join(digit if digit in HEX else "0" for digit in digits))


def texts_of(
    file: str, found: Mapping[str, Any], whole: Mapping[str, Any], root: Path
) -> dict[int, tuple[str, bytes]]:
    """Returns (name, text) by source number, for the sources that are found."""
    numbers = {
        int(each["id"]): name
        for name, each in whole.get("sources", {}).items()
        if isinstance(each, Mapping) and "id" in each
    }
    numbers |= dict(enumerate(whole.get("sourceList", ())))
    if isinstance(found.get("id"), int):  # Foundry artifacts
        own = found.get("ast", {}).get("absolutePath") or next(iter(targets(found)), file)
        numbers.setdefault(found["id"], own)
    texts = {}
    for number, name in numbers.items():
        given = whole.get("sources", {}).get(name, {}).get("content")
        path = root / name
        if given is None and path.is_file() and path.stat().st_size <= SOURCE_LIMIT:
            given = path.read_text()
        if given is not None:
            texts[number] = (name, given.encode())
    return texts


def targets(found: Mapping[str, Any]) -> Iterator[str]:
    """Yields the compilation targets named in the metadata of an artifact."""
    metadata = found.get("metadata", {})
    if isinstance(metadata, str):
        metadata = json.loads(metadata or "{}")
    yield from metadata.get("settings", {}).get("compilationTarget", {})


def decoded_source_map(
    text: str, code: bytes, texts: Mapping[int, tuple[str, bytes]]
) -> dict[int, SourceLocation]:
    """Decodes solc's source map, ``start:length:file:...`` per instruction.

    An empty field has the value of the previous instruction.
    """
    starts = {
        number: [0, *(at + 1 for at, byte in enumerate(source) if byte == 10)]
        for number, (_, source) in texts.items()
    }
    start, number = 0, -1
    found: dict[int, SourceLocation] = {}
    for pc, entry in zip(instructions(code), text.split(";"), strict=False):
        fields = entry.split(":")
        if fields[0]:
            start = int(fields[0])
        if len(fields) > 2 and fields[2]:
            number = int(fields[2])
        if number in texts:
            found[pc] = SourceLocation(texts[number][0], bisect_right(starts[number], start))
    return found
