"""Reads foreign JSON with a depth limit.

Reads large text in pieces, so that other threads can run.
"""

from collections.abc import Callable
from typing import Any

DEEPEST: int
PIECE: int
DEPTH: int

def decode(
    text: bytes | bytearray | memoryview | str,
    loads: Callable[[Any], Any] = ...,
    strict: bool = False,
) -> Any: ...
def is_too_deep(text: bytes | bytearray | memoryview | str, most: int = ...) -> bool: ...
