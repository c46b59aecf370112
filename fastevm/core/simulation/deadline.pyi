"""Stops runners that run too long, or whose caller has left: one thread watches all deadlines."""

from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar, final

from fastevm.core.simulation.values import SimulationError

T = TypeVar("T")

TICK_SECONDS: float

class Cancellable(Protocol):
    """Something that runs without the GIL and stops when told to."""

    def cancel(self) -> None: ...
    def rearm(self) -> None: ...

def out_of_time(seconds: float) -> SimulationError: ...
def thread_owned(kind: type[T]) -> T: ...

@final
class Cancellation:
    """Stops whatever a thread runs while it is active there; any thread may ask for that, once.

    ``is_brief``: whoever made it ends it long before any deadline, so that none is watched.
    """

    is_cancelled: bool
    @property
    def is_brief(self) -> bool: ...
    def __init__(self, *, is_brief: bool = False) -> None: ...
    def cancel(self) -> None: ...
    def active(self) -> AbstractContextManager[None]: ...
    def add(self, runner: Cancellable) -> None: ...
    def remove(self, runner: Cancellable) -> None: ...

@final
class Watchdog:
    """Calls ``cancel`` on whatever is still running when its time is up."""

    def watch(self, runner: Cancellable, seconds: float) -> AbstractContextManager[None]: ...
    def begin(self, runner: Cancellable, deadline: float) -> None:
        """Note a deadline (monotonic time)."""
    def end(self, runner: Cancellable) -> None:
        """Forget a deadline."""

WATCHDOG: Final[Watchdog]
