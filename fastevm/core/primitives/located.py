"""Errors whose message begins with the position of the value: ``access_list[1]: expected ...``."""

from copy import copy
from typing import Final

READ_ERRORS: Final = (ValueError, TypeError, OverflowError)  # of a value that cannot be read


def located(error: Exception, path: str, name: str = "") -> Exception:
    """Returns a copy of the error whose message begins with ``path``.

    ``name``: the name that the message gives the value at ``path``; the path replaces it.
    """
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
