"""Reads programs to time, with expected gas and output, from files such as ``cases.json.xz``."""

from __future__ import annotations

import json
import lzma
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

OUTPUT_LIMIT = 256  # bytes of output in a case file


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run: gas without intrinsic gas and before refunds, output, success."""

    gas_used: int
    output: str  # 0x-prefixed, cut at OUTPUT_LIMIT bytes
    success: bool

    def difference(self, expected: Outcome) -> str:
        """Describes how the outcome differs from ``expected``. Empty if there is no difference."""
        found = [
            f"{name} is {getattr(self, name)}, expected {getattr(expected, name)}"
            for name in ("success", "gas_used", "output")
            if getattr(self, name) != getattr(expected, name)
        ]
        return "; ".join(found)


@dataclass(frozen=True, slots=True)
class Case:
    """A message call on a prepared state, as the file describes it."""

    name: str
    group: str
    environment: dict[str, Any]
    document: dict[str, Any]

    def expected(self, slow: bool) -> Outcome:
        """Returns the outcome of the full case, or of the shorter form for slow engines."""
        document = self.document
        if slow and document.get("expected_slow"):
            short = document["expected_slow"]
            return Outcome(short["gas_used"], short["output"], short["success"])
        return Outcome(
            document["expected_gas_used"],
            document["expected_output"],
            document["expected_success"],
        )

    def scale(self, slow: bool) -> float:
        """Returns the gas of the full case divided by the gas of the shorter form."""
        short = self.expected(slow).gas_used
        return self.expected(False).gas_used / short if short else 1.0


def read(file: Path) -> dict[str, Any]:
    """Reads a file of cases. The file is JSON, compressed with xz if its name ends so."""
    content = file.read_bytes()
    found: dict[str, Any] = json.loads(
        lzma.decompress(content) if file.suffix == ".xz" else content
    )
    return found


@cache
def named(file: Path) -> dict[str, dict[str, Any]]:
    """Returns the cases of a file by name. The file is read once."""
    return {entry["name"]: entry for entry in read(file)["cases"]}


def load(file: Path, match: str = "*") -> list[Case]:
    """Returns the cases with names that match a pattern. Raises ValueError if there are none."""
    document = read(file)
    environment = document.get("env", {})
    found = [
        Case(entry["name"], entry["group"], environment, entry)
        for entry in document["cases"]
        if fnmatch(entry["name"], match)
    ]
    if not found:
        raise ValueError(f"{file} has no case that matches {match!r}")
    return found
