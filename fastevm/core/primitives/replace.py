"""Copies of values with some members changed, as `copy.replace` of Python 3.13 makes them."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")


def replace(value: T, /, **changes: Any) -> T:
    """Returns a copy of a struct or dataclass instance. Raises TypeError for an unknown member."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]
