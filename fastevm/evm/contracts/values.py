"""Decoded values with names: tuples whose members are also attributes and keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, SupportsIndex
from weakref import WeakValueDictionary


class Values(tuple[Any, ...]):
    """The values of a struct, of several outputs or of an event, in order.

    Access a value by position, by name (``values["to"]``), or as an attribute (``values.to``).
    Equals a tuple with the same values, and a mapping with the same names and values.
    """

    __slots__ = ()
    _fields: tuple[str, ...] = ()

    def __getitem__(self, key: SupportsIndex | slice | str) -> Any:
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self._fields.index(key))
            except ValueError:
                raise KeyError(key) from None
        return tuple.__getitem__(self, key)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self._asdict() == other
        return tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{name or position}={value!r}"
            for position, (name, value) in enumerate(zip(self._fields, self, strict=True))
        )
        return f"Values({inside})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self._fields, tuple(self))

    def _asdict(self) -> dict[str, Any]:
        """Returns the values by name. The key of a value without a name is its position."""
        names = (name or str(position) for position, name in enumerate(self._fields))
        return dict(zip(names, self, strict=True))

    def keys(self) -> Iterator[str]:
        """Returns the names, so that ``dict(values)`` works."""
        return iter(self._fields)


# A class lives as long as types or values use it, so the cache needs no limit.
_CLASSES: Final[WeakValueDictionary[tuple[str, ...], type[Values]]] = WeakValueDictionary()


def values_class(names: tuple[str, ...]) -> type[Values]:
    """Returns the class for values with these names. Some names may be empty, but not all."""
    known = _CLASSES.get(names)
    if known is not None:
        return known
    found: dict[str, Any] = {"__slots__": (), "_fields": names, "__doc__": Values.__doc__}
    for position, name in enumerate(names):
        if (name.isidentifier() and not hasattr(Values, name)) or name in ("count", "index"):
            found[name] = property(itemgetter(position))
    return _CLASSES.setdefault(names, type("Values", (Values,), found))


def restored(names: tuple[str, ...], values: Sequence[Any]) -> Values:
    """Restores pickled values."""
    return values_class(names)(values)


def class_for(names: Sequence[str]) -> type[Values] | None:
    """Returns the class for values with these names, or None if there are no names or a name
    repeats.
    """
    given = [name for name in names if name]
    return values_class(tuple(names)) if given and len(set(given)) == len(given) else None
