"""Errors whose message begins with the position of the value: ``access_list[1]: expected ...``."""

from copy import copy
from typing import Any, Final

READ_ERRORS: Final = (ValueError, TypeError, OverflowError)  # raised for invalid values


SHOWN = 80  # characters of an invalid value that an error shows


def shown(value: Any) -> str:
    """Returns the start of the representation of a value, for an error message.

    CPython refuses to convert integers of more than 4,300 digits to text. For such an integer, the
    result has only its size.
    """
    try:
        text = repr(value)
    except ValueError:
        return "a huge number"
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def located(error: Exception, path: str, name: str = "") -> Exception:
    """Returns a copy of the error whose message begins with ``path`` in place of ``name``."""
    text = str(error)
    if name:
        text = text.removeprefix(f"{name}: ")
    return with_text(error, f"{path}: {text}")


def with_text(error: Exception, text: str) -> Exception:
    """Returns a copy of the error with another message."""
    if len(error.args) != 1 or not isinstance(error.args[0], str):  # such as a UnicodeError
        return ValueError(text)
    changed = copy(error)
    changed.args = (text,)
    return changed
