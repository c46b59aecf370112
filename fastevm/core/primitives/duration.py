"""Durations as users write them: ``200ms``, ``2s``, ``1.5m`` or ``1h``."""

import re
from typing import Final

UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
"""The length of each unit in seconds."""
FORM: Final = r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(ms|s|m|h)?"


def read_duration(text: str, *, unit: str) -> float:
    """Returns a duration in seconds. ``unit`` applies to a number without a unit.

    Raises ValueError if the text is not a duration.
    """
    found = re.fullmatch(FORM, text.strip())
    if found is None:
        raise ValueError(f"invalid duration {text!r}: expected one such as 200ms, 2s or 1m")
    return float(found[1]) * UNITS[found[2] or unit]


def duration_text(milliseconds: int) -> str:
    """Returns a text for a duration, in the shortest form that `read_duration` accepts."""
    if milliseconds % 1_000:
        return f"{milliseconds}ms"
    return f"{milliseconds // 1_000}s"
