"""Reads the numbers of configuration files: JSON's own, or strings in decimal or hex."""

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
