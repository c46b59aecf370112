"""The state of a block that another node holds."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, StateSource, Wanted

KNOWN_LIMIT: Final[int]
"""Bytes of values that are known of one remote state: about seven million slots."""

T = TypeVar("T")

def never_wait() -> None:
    """From now on this thread gets StateNotKnown where it would wait for a remote state.

    An event loop says so of its thread, and gives what failed so to another.
    """

def guesses() -> int:
    """How often runs of this thread read what was not known, since it began."""

def settled(layer: Layer, run: Callable[[], T], calls: Iterable[Mapping[str, Any]] = ()) -> T:
    """``run()``, which reads ``layer``; above a remote state until it guesses nothing."""

class RemoteState:
    """What is known of the state of one block, and the source of the rest.

    ``limit``: bytes of known values; beyond it a fetch raises ResourceLimitError. Any number of
    layers and threads may share one.

    With ``resolves`` the source is at hand, and a run asks it at every read that misses: nothing is
    guessed, and nothing is read that the rules do not read, access lists included. What the source
    raises is the ``failure``, and ends the run with StateNotKnown.
    """

    def __init__(
        self, source: StateSource, limit: int = ..., *, resolves: bool = False
    ) -> None: ...
    @property
    def resolves(self) -> bool: ...
    @property
    def failure(self) -> Exception | None: ...
    @property
    def source(self) -> StateSource: ...
    @property
    def limit(self) -> int: ...
    @property
    def rounds(self) -> int:
        """Requests of the source so far."""

    @property
    def size(self) -> int:
        """Bytes that the known values take."""

    def put(self, found: Found) -> None:
        """Add values; one that is known already stays as it is."""

    def known_values(self) -> Found:
        """A copy of all known values."""

    def fetch(self, wanted: Wanted) -> None:
        """Fetch these values, as far as they are not known, in one request."""

    def fetch_missing(self, calls: Iterable[Mapping[str, Any]] = ()) -> None:
        """Fetch what runs noted, or wait for who does; ``calls``: call objects that read it.

        ForkError where a value cannot be had, StateNotKnown on a thread that never waits.
        """

    def attempt(self, run: Callable[[], T]) -> tuple[T, bool]:
        """What ``run()`` gives, and whether it guessed; then it says nothing, errors neither.

        All reads of this thread guess meanwhile, those of Python too.
        """

    def take_missing(self) -> Wanted:
        """What runs noted and nobody fetches; for who fetches it elsewhere."""

    def settle(self, run: Callable[[], T], calls: Iterable[Mapping[str, Any]] = ()) -> T:
        """What ``run()`` gives, or raises, once it guesses nothing.

        It is called again after each fetch, so it must leave nothing behind. ``calls``: call
        objects in JSON form that say what it does, for the source to ask ahead.
        """
