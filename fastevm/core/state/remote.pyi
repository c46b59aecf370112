"""The state of a block of another node."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from fastevm.core.state.layer import Layer
from fastevm.core.state.source import Found, StateSource, Wanted

KNOWN_LIMIT: Final[int]
"""Default limit in bytes for the known values of a remote state: about seven million slots."""

T = TypeVar("T")

def never_wait() -> None:
    """Makes this thread raise StateNotKnown instead of waiting for a remote state.

    Call it on the thread of an event loop. The caller then repeats a failed request on another
    thread.
    """

def may_wait() -> None:
    """Reverts `never_wait`: this thread waits for a remote state again."""

def guesses() -> int:
    """Returns how many unknown values the executions of this thread have read so far."""

def resolved(layer: Layer, run: Callable[[], T], calls: Iterable[Mapping[str, Any]] = ()) -> T:
    """Returns ``run()``, which reads ``layer``.

    Repeats ``run`` until it guesses no remote value.
    """

class RemoteState:
    """The known values of the state of a block, and the source of all other values.

    ``source``: a `fastevm.core.state.source.StateSource`. ``limit``: bytes of known values; a fetch
    that would exceed it raises ResourceLimitError. Any number of layers and threads may share a
    remote state.

    With ``resolves``, executions ask the source on every read of an unknown value and guess
    nothing. The source is asked only for values that the protocol reads, even with access lists. If
    the source raises, the exception is stored as ``failure`` and the execution ends with
    StateNotKnown.
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
        """The number of requests to the source so far."""

    @property
    def size(self) -> int:
        """The size of the known values in bytes."""

    def put(self, found: Found) -> None:
        """Adds values. Does not change values that are known already."""

    def known_values(self) -> Found:
        """Returns a copy of all known values."""

    def fetch(self, wanted: Wanted) -> None:
        """Fetches the wanted values that are not known yet, in one request."""

    def fetch_missing(self, calls: Iterable[Mapping[str, Any]] = ()) -> None:
        """Fetches recorded misses, or waits for the thread that fetches them.

        ``calls``: call objects that read the values. Raises ForkError if a value is unavailable,
        and StateNotKnown on a thread that never waits.
        """

    def attempt(self, run: Callable[[], T]) -> tuple[T, bool]:
        """Returns ``run()`` and whether it guessed. If it guessed, its errors are suppressed.

        During the call, all reads of this thread may guess, also reads from Python.
        """

    def take_missing(self) -> Wanted:
        """Removes and returns the misses that no thread is fetching. The caller must fetch them."""

    def run_resolved(self, run: Callable[[], T], calls: Iterable[Mapping[str, Any]] = ()) -> T:
        """Calls ``run()`` and fetches misses until it guesses nothing. Returns its last result.

        ``run`` is called again after each fetch, so it must have no side effects. ``calls``: call
        objects in JSON form that describe ``run``; the source may prefetch the values that they
        read. Raises StateNotKnown if ``run`` guessed a value of another remote state, which this
        remote state cannot fetch.
        """
