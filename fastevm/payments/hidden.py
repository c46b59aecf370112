"""A `repr` that hides members: keys, signatures, and what contains them."""

from collections.abc import Callable
from typing import Any, TypeVar

Record = TypeVar("Record", bound=type)


def hiding(*names: str) -> Callable[[Record], Record]:
    """Decorates a Struct or NamedTuple whose repr writes ``...`` for these members.

    Members of dataclasses are hidden with ``field(repr=False)``.
    """

    def __repr__(self: Any) -> str:
        fields = getattr(self, "__struct_fields__", None) or self._fields
        members = (
            f"{name}={'...' if name in names else repr(getattr(self, name))}" for name in fields
        )
        return f"{type(self).__name__}({', '.join(members)})"

    __repr__.hidden = frozenset(names)  # type: ignore[attr-defined]

    def decorate(record: Record) -> Record:
        record.__repr__ = __repr__  # type: ignore[assignment]
        return record

    return decorate
