"""A `repr` that hides members: keys, signatures, and what contains them."""

from collections.abc import Callable
from typing import Any


def hiding(*names: str) -> Callable[[Any], str]:
    """Returns a ``__repr__`` of a Struct or NamedTuple that writes ``...`` for these members.

    Members of dataclasses are hidden with ``field(repr=False)``.
    """

    def __repr__(self: Any) -> str:
        fields = getattr(self, "__struct_fields__", None) or self._fields
        members = (
            f"{name}={'...' if name in names else repr(getattr(self, name))}" for name in fields
        )
        return f"{type(self).__name__}({', '.join(members)})"

    __repr__.hidden = frozenset(names)  # type: ignore[attr-defined]
    return __repr__
