"""Decodes numbers and bytes from JSON of files and other nodes: genesis, blocks, feed messages."""

from typing import Any


def read_number(value: Any, name: str) -> int:
    """Returns a non-negative number given as an int or as a decimal or ``0x`` hex string.

    Raises ValueError, which mentions ``name``, if the value is anything else.
    """
    number = value
    if isinstance(value, str):
        try:
            number = int(value, 16 if value[:2].lower() == "0x" else 10)
        except ValueError:
            number = None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"{name}: expected a number that is not negative, found {value!r}")
    return number


def read_bytes(value: Any, name: str, size: int | None = None) -> bytes:
    """Returns the bytes of a hex string, with or without 0x.

    Raises ValueError, which mentions ``name``, if the value is not a hex string, or does not have
    ``size`` bytes (None: any size).
    """
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected a hex string, found {value!r}")
    try:
        data = bytes.fromhex(value[2:] if value[:2] in ("0x", "0X") else value)
    except ValueError:
        raise ValueError(f"{name}: expected a hex string, found {value!r}") from None
    if size is not None and len(data) != size:
        raise ValueError(f"{name}: expected {size} bytes, found {len(data)}")
    return data
