"""Reads large JSON in pieces, so that other threads run in between."""

from collections.abc import Callable
from typing import Any

PIECE: int
DEPTH: int

def decode(
    text: bytes | bytearray | memoryview | str,
    loads: Callable[[Any], Any] = ...,
    strict: bool = False,
    depth: int = ...,
) -> Any: ...
