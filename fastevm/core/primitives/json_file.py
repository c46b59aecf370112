"""Parses JSON files that a user names."""

import json
import re
from typing import Any, Final

# most levels of JSON; the parser recurses, and a program may have raised Python's limit
MAX_DEPTH: Final = 64
_BRACKET: Final = re.compile(rb"[][{}]")


def read_json(data: bytes) -> Any:
    """Parses JSON. Raises ValueError for invalid text or more than MAX_DEPTH levels."""
    depth = 0
    for bracket in _BRACKET.finditer(data):
        depth += 1 if bracket[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise ValueError(f"JSON of more than {MAX_DEPTH} levels")
    return json.loads(data)
