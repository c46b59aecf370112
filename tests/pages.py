"""Extracts fenced code blocks and shell commands from pages of the documentation."""

import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .shared_data import ROOT

DOCS = ROOT / "docs"
UPSTREAM = DOCS / "upstream"
FENCE = re.compile(r'^( *)```(\w+)(?: title="([^"]*)")?\n(.*?)^\1```$', re.S | re.M)
PROMPT = "$ "


class Block(NamedTuple):
    """A fenced code block. ``title``: the name of the file that the block shows, or empty."""

    language: str
    title: str
    code: str


def blocks_of(text: str) -> list[Block]:
    """Returns all fenced blocks of a page."""
    return [Block(*found) for _, *found in FENCE.findall(text)]


def commands_of(text: str) -> list[str]:
    """Returns all commands of a page: lines of ``sh`` blocks, and prompts of ``console`` blocks.

    A command continues in the next line after a backslash or within quotes.
    """
    found: list[str] = []
    for block in blocks_of(text):
        lines = block.code.splitlines()
        if block.language == "sh":
            found += _joined(lines)
        elif block.language == "console":
            found += _joined(_typed(lines))
    return found


def _typed(lines: Iterable[str]) -> Iterator[str]:
    """Yields what a user types in a console block, without the prompts."""
    continues = False
    for line in lines:
        if continues or line.startswith(PROMPT):
            continues = line.endswith("\\")
            yield line.removeprefix(PROMPT)


def _joined(lines: Iterable[str]) -> Iterator[str]:
    begun = ""
    for line in lines:
        begun = f"{begun} {line.strip()}".strip()
        if begun.endswith("\\"):
            begun = begun[:-1]
            continue
        try:
            words = shlex.split(begun, comments=True)
        except ValueError:  # An unfinished quoted string continues in the next line.
            continue
        if words:
            yield begun
        begun = ""
    assert not begun, begun


def pages() -> list[Path]:
    """Returns the Markdown pages of the documentation, without texts for other projects."""
    return sorted(path for path in DOCS.rglob("*.md") if UPSTREAM not in path.parents)
