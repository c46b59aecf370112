"""Checks the types of arguments at the public border of the package.

`checked` decorates classes and functions that users call; `check_members` checks the members of a
Struct or dataclass. Both read the annotations, once, when they are first needed. If an argument has
a value of another type, InvalidTerms is raised and names the argument. Calls inside the package are
not checked at run time: mypy checks them.
"""

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from fastevm.payments.errors import InvalidTerms

Made = TypeVar("Made", bound=Callable[..., Any])

_ANY: Final = (Any, object, inspect.Parameter.empty)
_ITEMS: Final = (Sequence, Collection, list, tuple, set, frozenset)
_NAMES: Final = {
    str: "text", bytes: "bytes", int: "a whole number", float: "a number", bool: "True or False",
    types.NoneType: "None",
}  # fmt: skip


class Check(NamedTuple):
    """Tests whether values have the type of an annotation.

    ``expected`` is the type as text, for errors. ``exact`` holds the types whose values are all
    accepted. They are compared first, because that is cheap.
    """

    accepts: Callable[[Any], bool]
    expected: str
    exact: frozenset[type] = frozenset()

    def refuses(self, value: Any) -> bool:
        """Whether the value lacks the annotated type."""
        return type(value) not in self.exact and not self.accepts(value)


def checked(made: Made) -> Made:
    """Decorates a function, or the constructor and public methods of a class.

    The decorated functions raise InvalidTerms for arguments that do not have the annotated types.
    """
    if not isinstance(made, type):
        wrapped: Made = _checking(made)
        return wrapped
    for name, member in list(vars(made).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, classmethod | staticmethod):
            setattr(made, name, type(member)(_checking(member.__func__)))
        elif inspect.isfunction(member):
            setattr(made, name, _checking(member))
    return made


def check_members(made: Any) -> None:
    """Raises InvalidTerms if a member of a Struct or dataclass does not have its annotated type.

    Call it in ``__post_init__``.
    """
    kind: Any = type(made)
    for name, check in _members(kind).items():
        value = getattr(made, name)
        if check.refuses(value):
            raise _refused(name, check, value)


def _refused(name: str, check: Check, value: Any) -> InvalidTerms:
    return InvalidTerms(f"{name}: expected {check.expected}, found {type(value).__name__}")


def _checking(function: Any) -> Any:
    """Returns a function that checks its arguments and then calls ``function``."""
    plan: list[tuple[tuple[str, ...], dict[str, Check]]] = []

    def check(arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not plan:
            plan.append(_plan(function))
        names, checks = plan[0]
        given = zip(names, arguments, strict=False)
        for name, value in chain(given, named.items()) if named else given:
            found = checks.get(name)
            if found is not None and found.refuses(value):
                raise _refused(name, found, value)

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def waiting(*arguments: Any, **named: Any) -> Any:
            check(arguments, named)
            return await function(*arguments, **named)

        return waiting

    @wraps(function)
    def calling(*arguments: Any, **named: Any) -> Any:
        check(arguments, named)
        return function(*arguments, **named)

    return calling


def _plan(function: Any) -> tuple[tuple[str, ...], dict[str, Check]]:
    """Returns the names of the positional parameters, and the checks of all parameters."""
    hints = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    positional = [item.name for item in parameters if item.kind is item.POSITIONAL_OR_KEYWORD]
    checks = {
        item.name: check_of(hints[item.name])
        for item in parameters
        if item.name in hints and item.kind not in variable
    }
    return tuple(positional), checks


@cache
def _members(kind: Any) -> dict[str, Check]:
    """Returns the checks of the members of a Struct or dataclass."""
    hints = typing.get_type_hints(kind)
    if hasattr(kind, "__struct_fields__"):
        names = list(kind.__struct_fields__)
    else:
        names = [field.name for field in dataclasses.fields(kind) if field.init]
    return {name: check_of(hints[name]) for name in names}


def check_of(hint: Any) -> Check:
    """Returns the check of an annotation."""
    if hint in _ANY or isinstance(hint, TypeVar):
        return Check(lambda value: True, "anything")
    if hint is None or hint is types.NoneType:
        return Check(lambda value: value is None, "None", frozenset({types.NoneType}))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _either([check_of(argument) for argument in arguments])
    if origin is typing.Literal:
        names = " or ".join(map(repr, arguments))
        return Check(lambda value: value in arguments, names)
    if origin is Callable:
        return Check(callable, "a function")
    if origin is Mapping or origin is dict:
        return _mapping(origin, *map(check_of, arguments))
    if origin in _ITEMS:
        return _items(origin, arguments)
    return _instance(origin or hint)


def _either(checks: list[Check]) -> Check:
    accepting = [check.accepts for check in checks]
    expected = " or ".join(dict.fromkeys(check.expected for check in checks))
    exact = frozenset[type]().union(*(check.exact for check in checks))
    return Check(lambda value: any(accepts(value) for accepts in accepting), expected, exact)


def _mapping(kind: Any, key: Check, value: Check) -> Check:
    def accepts(found: Any) -> bool:
        return isinstance(found, kind) and all(
            key.accepts(name) and value.accepts(member) for name, member in found.items()
        )

    return Check(accepts, f"a mapping of {key.expected} to {value.expected}")


def _items(kind: Any, arguments: tuple[Any, ...]) -> Check:
    if kind is tuple and arguments[-1:] != (...,):
        return _tuple([check_of(argument) for argument in arguments])
    item = check_of(arguments[0])

    def accepts(found: Any) -> bool:
        return (
            isinstance(found, kind)
            and not isinstance(found, str | bytes | bytearray)
            and all(map(item.accepts, found))
        )

    return Check(accepts, f"several values, each {item.expected}")


def _tuple(parts: list[Check]) -> Check:
    def accepts(found: Any) -> bool:
        return (
            isinstance(found, tuple)
            and len(found) == len(parts)
            and all(part.accepts(value) for part, value in zip(parts, found, strict=True))
        )

    return Check(accepts, f"a tuple of {', '.join(part.expected for part in parts)}")


def _instance(kind: Any) -> Check:
    if not isinstance(kind, type) or kind is Iterable:
        return Check(lambda value: True, "anything")
    if kind is int:
        return Check(
            lambda value: isinstance(value, int) and type(value) is not bool,
            _NAMES[int],
            frozenset({int}),
        )
    if kind is float:
        return Check(
            lambda value: (
                isinstance(value, int | float) and type(value) is not bool and value == value
            ),
            _NAMES[float],
        )
    if getattr(kind, "_is_protocol", False):
        names = _protocol_names(kind)
        return Check(lambda value: all(hasattr(value, name) for name in names), kind.__name__)
    expected = _NAMES.get(kind, kind.__name__)
    return Check(lambda value: isinstance(value, kind), expected, frozenset({kind}))


def _protocol_names(kind: type) -> list[str]:
    """Returns the names of the members that this protocol requires."""
    bases = [base for base in kind.__mro__ if getattr(base, "_is_protocol", False)]
    found = {name for base in bases for name in (*vars(base), *inspect.get_annotations(base))}
    return sorted(name for name in found if not name.startswith("_"))
