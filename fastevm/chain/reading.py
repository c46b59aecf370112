"""Reads byte strings of configuration files: hex, with 0x or without."""

from typing import Any


def read_bytes(value: Any, name: str, size: int | None = None) -> bytes:
    """The bytes of a hex string; ``name`` says in the ValueError what was being read."""
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a hex string, found {value!r}")
    try:
        data = bytes.fromhex(value[2:] if value[:2] in ("0x", "0X") else value)
    except ValueError:
        raise ValueError(f"{name}: expected a hex string, found {value!r}") from None
    if size is not None and len(data) != size:
        raise ValueError(f"{name}: expected {size} bytes, found {len(data)}")
    return data
