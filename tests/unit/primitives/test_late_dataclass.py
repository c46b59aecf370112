"""A late data class is what the standard decorator makes, but for when its methods are written."""

import copy
import dataclasses
import inspect
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from fastevm.primitives import late_dataclass

LATE = vars(late_dataclass)["dataclass"]  # a type checker takes it for the standard one


def classes(decorator: Callable[..., Any]) -> dict[str, Any]:
    """The same classes, decorated."""

    @decorator(frozen=True, slots=True)
    class Place:
        """Frozen, with defaults of every kind."""

        name: str
        height: int = 3
        notes: list[int] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=0, repr=False, compare=False)
        made: int | None = dataclasses.field(init=False, default=None)

        def twice(self) -> int:
            return 2 * self.height

    @decorator(slots=True, kw_only=True)
    class Open:
        """Fields that may be set."""

        first: int
        second: int = 2
        both: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.both = self.first + self.second

    @decorator(slots=True, eq=False)
    class Identical:
        """Equal to itself alone."""

        number: int

    @decorator(frozen=True, slots=True)
    class Inner(Place):
        """One more field than its base."""

        depth: int = 1

    @decorator(frozen=True, slots=True)
    class Own:
        """With methods of its own where the decorator has some."""

        number: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.number % 10 == other.number % 10

        def __repr__(self) -> str:
            return "own"

    made = {one.__name__: one for one in (Place, Open, Identical, Inner, Own)}
    for name, one in made.items():
        one.__qualname__ = name
    return made


STANDARD, OURS = classes(dataclasses.dataclass), classes(LATE)
Place = OURS["Place"]  # pickle looks it up here
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "Place": (("hill",), {"height": 5}),
    "Open": ((), {"first": 1}),
    "Identical": ((4,), {}),
    "Inner": (("cave", 7, [1], 9), {"depth": 2}),
    "Own": ((12,), {}),
}


@pytest.mark.parametrize("name", STANDARD)
def test_instances_show_and_hold_the_same(name: str) -> None:
    given, named = ARGUMENTS[name]
    standard, ours = STANDARD[name](*given, **named), OURS[name](*given, **named)
    assert repr(ours) == repr(standard)
    assert dataclasses.is_dataclass(ours)
    if name != "Own":
        assert dataclasses.asdict(ours) == dataclasses.asdict(standard)
    assert not hasattr(ours, "__dict__")
    with pytest.raises(AttributeError):
        object.__setattr__(ours, "unknown", 1)


@pytest.mark.parametrize("name", STANDARD)
def test_classes_describe_the_same(name: str) -> None:
    standard, ours = STANDARD[name], OURS[name]
    parameters = [
        [
            (one.name, one.kind, one.annotation)
            for one in inspect.signature(made).parameters.values()
        ]
        for made in (standard, ours)
    ]
    assert parameters[0] == parameters[1]
    assert ours.__match_args__ == standard.__match_args__
    assert ours.__doc__ == standard.__doc__
    assert ours.__slots__ == standard.__slots__
    assert repr(ours.__dataclass_params__) == repr(standard.__dataclass_params__)
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    described = [[(f.name, f.type, f.kw_only, f.init, f.default) for f in dataclasses.fields(one)]
                 for one in (standard, ours)]  # fmt: skip
    assert described[0] == described[1]


@pytest.mark.parametrize("name", STANDARD)
@pytest.mark.parametrize("arguments", [((), {}), ((1, 2, 3, 4, 5, 6), {}), ((), {"unknown": 1})])
def test_wrong_arguments_are_refused_in_the_same_words(name: str, arguments: Any) -> None:
    given, named = arguments
    told = []
    for one in (STANDARD[name], OURS[name]):
        with pytest.raises(TypeError) as error:
            one(*given, **named)
        told.append(str(error.value).partition("__init__")[2])
    assert told[0] == told[1]


def test_values_are_compared_hashed_and_replaced() -> None:
    one, other = Place("a", hidden=1), Place("a", hidden=2)
    assert one == other and one != Place("b") and one != "a"
    assert OURS["Inner"]("a") != one
    with pytest.raises(TypeError):
        hash(one)  # by a list in it
    assert hash(Place("a", notes=())) == hash(Place("a", notes=()))
    assert dataclasses.replace(one, height=9).twice() == 18
    assert OURS["Own"](2) == OURS["Own"](12) and hash(OURS["Own"](2)) == hash(OURS["Own"](2))
    first, second = OURS["Identical"](1), OURS["Identical"](1)
    assert first != second and len({first, second}) == 2
    assert one.notes is not other.notes
    if sys.version_info >= (3, 13):
        assert copy.replace(one, height=9).height == 9


def test_a_frozen_one_refuses_changes() -> None:
    one = Place("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        one.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del one.name
    free = OURS["Open"](first=1)
    free.first = 5
    assert (free.first, free.both) == (5, 3)


def test_copies_and_pickles_are_equal() -> None:
    one = Place("a", notes=[1, 2])
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert other == one and other is not one


def test_methods_are_written_when_they_are_used() -> None:
    place = classes(LATE)["Place"]

    def waiting() -> set[str]:
        return {key for key, value in vars(place).items() if type(value).__name__ == "_Late"}

    assert {"__init__", "__eq__", "__hash__", "__repr__"} <= waiting()
    made = place("a")
    assert "__init__" not in waiting() and {"__eq__", "__hash__", "__repr__"} <= waiting()
    assert made == made
    assert waiting() == {"__hash__"}


def test_threads_may_use_a_class_first() -> None:
    for _ in range(20):
        place = classes(LATE)["Inner"]
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda number, one=place: one("a", number), range(8)))
        assert [one.height for one in made] == list(range(8))
