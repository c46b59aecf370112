"""``dataclass`` as of the standard library, whose methods are written when they are first used.

The standard one compiles six functions for a class, which takes a millisecond: a tenth of a second
for the hundred classes of a node that starts. Of most it makes no instance, of others it compares
none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, field, fields, is_dataclass
from dataclasses import dataclass as written
from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass"]

FIELDS: Final = ("__dataclass_fields__", "__match_args__") + (
    ("__replace__",) if sys.version_info >= (3, 13) else ()
)
REST: Final = ("__dataclass_params__", "__eq__", "__repr__")


class _Late:
    """Attributes of a class in whose place others come when one of them is first looked up."""

    __slots__ = ("_name", "_write")

    def __init__(self, name: str, write: Callable[[], dict[str, Any]]) -> None:
        self._name, self._write = name, write

    def __get__(self, instance: Any, owner: type) -> Any:
        found = self._write()[self._name]
        bind = getattr(type(found), "__get__", None)
        return found if bind is None else bind(found, instance, owner)


class _Written:
    """What the decorator writes for the class ``late``, which stands in for ``model``."""

    def __init__(self, model: type, frozen: bool, eq: bool, kw_only: bool) -> None:
        self._model, self._frozen, self._eq, self._kw_only = model, frozen, eq, kw_only
        self._derived = any(map(is_dataclass, model.__bases__))
        self.late: type = model

    def fields(self) -> dict[str, Any]:
        """What `dataclasses.fields` and its like read; compiles nothing but for base classes."""
        frozen = self._frozen and self._derived
        return self._put(FIELDS, self._done(frozen=frozen, init=False, repr=False, eq=False))

    def rest(self) -> dict[str, Any]:
        """The methods that compare and print, of the standard decorator."""
        return self._put(REST, self._done(frozen=self._frozen, eq=self._eq, slots=True))

    def init(self) -> dict[str, Any]:
        """The method that is needed of most classes that are used at all."""
        made = _init_of(self.late, self._known(), self._frozen)
        return self._put(("__init__",), {"__init__": made})

    def hash(self) -> dict[str, Any]:
        """The method that is looked up wherever an instance is the default of another class."""
        found = [
            name for name, one in self._known() if (one.compare if one.hash is None else one.hash)
        ]
        text = f"def __hash__(self): return hash(({''.join(f'self.{name}, ' for name in found)}))"
        scope: dict[str, Any] = {}
        exec(text, scope)
        return self._put(("__hash__",), {"__hash__": scope["__hash__"]})

    def _known(self) -> list[tuple[str, Field[Any]]]:
        """The fields with their names, by the annotations where no base class has more."""
        if self._derived:
            return [(one.name, one) for one in fields(self.late)]
        found = []
        for name, kind in self._model.__annotations__.items():
            given = vars(self._model).get(name, MISSING)
            one: Field[Any] = given if isinstance(given, Field) else field(default=given)
            one.type = kind
            if one.kw_only is MISSING:
                one.kw_only = self._kw_only
            found.append((name, one))
        return found

    def _done(self, **options: bool) -> dict[str, Any]:
        model = self._model  # the decorator changes what it is given
        content = {key: value for key, value in vars(model).items() if key not in UNSHARED}
        copied = type(model)(model.__name__, model.__bases__, {**content, "__doc__": "-"})
        return dict(vars(written(kw_only=self._kw_only, **options)(copied)))

    def _put(self, names: tuple[str, ...], found: dict[str, Any]) -> dict[str, Any]:
        for name in names:  # of two threads that come here both write the same
            if isinstance(vars(self.late).get(name), _Late):
                setattr(self.late, name, found[name])
        return found


def _init_of(late: type, known: list[tuple[str, Field[Any]]], frozen: bool) -> Any:
    """``__init__`` of a data class with slots, compiled."""
    scope: dict[str, Any] = {"_MISSING": MISSING}
    given: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    for name, one in known:
        value = _value_of(name, one, scope)
        if one.init:
            (named if one.kw_only else given).append(_parameter(name, one))
        if value is not None:
            scope[f"_set_{name}"] = getattr(late, name).__set__
            lines.append(f" _set_{name}(self, {value})" if frozen else f" self.{name} = {value}")
    if hasattr(late, "__post_init__"):
        lines.append(" self.__post_init__()")
    parameters = ", ".join(["self", *given, *(["*", *named] if named else ())])
    exec(f"def __init__({parameters}):\n" + "\n".join(lines or [" pass"]), scope)
    made = scope["__init__"]
    made.__qualname__ = f"{late.__qualname__}.__init__"
    made.__annotations__ = {name: one.type for name, one in known if one.init} | {"return": None}
    return made


def _parameter(name: str, one: Field[Any]) -> str:
    if one.default is not MISSING:
        return f"{name}=_default_{name}"
    return name if one.default_factory is MISSING else f"{name}=_MISSING"


def _value_of(name: str, one: Field[Any], scope: dict[str, Any]) -> str | None:
    """The expression of a field's first value; None for a field that begins without one."""
    if one.default_factory is not MISSING:
        scope[f"_make_{name}"] = one.default_factory
        made = f"_make_{name}()"
        return f"{made} if {name} is _MISSING else {name}" if one.init else made
    if one.default is not MISSING:
        scope[f"_default_{name}"] = one.default
        return name if one.init else f"_default_{name}"
    return name if one.init else None


def _refuse_set(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)


UNSHARED: Final = frozenset(("__dict__", "__weakref__"))  # what a class makes for itself
FROZEN: Final = {
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    "__getstate__": _state,
    "__setstate__": _set_state,
}


def _late(model: type, frozen: bool, eq: bool, kw_only: bool) -> type:
    """A class of slots like ``model`` with `_Late` attributes."""
    names = tuple(model.__annotations__)
    without = UNSHARED.union(names)
    content = {key: value for key, value in vars(model).items() if key not in without}
    content["__slots__"] = names
    if "__eq__" in content and content["__hash__"] is None:  # as the class statement has set it
        del content["__hash__"]
    written = _Written(model, frozen, eq, kw_only)
    homes = {"__init__": written.init, "__hash__": written.hash}
    homes |= dict.fromkeys(FIELDS, written.fields)
    homes |= dict.fromkeys(REST, written.rest)
    if not eq:
        del homes["__eq__"]
    if not eq or not frozen:
        del homes["__hash__"]
    for name, write in homes.items():
        content.setdefault(name, _Late(name, write))
    if frozen:
        content = FROZEN | content
    written.late = type(model)(model.__name__, model.__bases__, content)
    return written.late


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *, slots: bool, frozen: bool = False, eq: bool = True, kw_only: bool = False
    ) -> Callable[[type], type]:
        """The standard decorator for classes with slots; their fields have no ``ClassVar``."""
        return lambda model: _late(model, frozen, eq, kw_only)
