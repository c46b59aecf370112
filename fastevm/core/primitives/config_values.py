"""Numbers and bytes in JSON members of files and of other nodes: genesis, blocks, feed messages."""

from typing import Any


def read_number(value: Any, name: str) -> int:
    """A number that is not negative: an int, or a string in decimal or ``0x`` hex.

    ``name`` says in the ``ValueError`` what was being read.
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
    """The bytes of a hex string, with 0x or without; exactly ``size`` of them if given.

    ``name`` says in the ``ValueError`` what was being read.
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
