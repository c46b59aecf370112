"""Deadlines, which stop a simulation that takes too long or whose caller has disconnected."""

from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar, final

from fastevm.core.simulation.values import SimulationError

T = TypeVar("T")

TICK_SECONDS: float

class Listener(Protocol):
    """An object whose `cancel` the deadline calls, because the object does not poll for a
    request.
    """

    def cancel(self) -> None: ...

class Stoppable(Protocol):
    """An object that runs without the GIL and polls for the request of a deadline."""

    def set_deadline(self, deadline: Deadline) -> Listener | None: ...

def out_of_time(seconds: float | None) -> SimulationError: ...
def thread_owned(kind: type[T]) -> T: ...
def time_limit(runner: Stoppable, seconds: float) -> AbstractContextManager[None]: ...

class Deadline:
    """Stops the simulations of one thread when its time has come.

    Without a time, only `cancel` stops them.

    ``is_brief``: whether the owner cancels the deadline long before any time limit. The watchdog
    ignores such a deadline.
    """

    @property
    def is_cancelled(self) -> bool: ...
    @property
    def is_brief(self) -> bool: ...
    def __init__(self, *, is_brief: bool = False) -> None: ...
    def cancel(self) -> None: ...
    def expire(self) -> None:
        """Stops the current simulation. The watchdog calls it every tick after the deadline."""
    def active(self) -> AbstractContextManager[None]: ...

@final
class Watchdog:
    """Calls `Deadline.expire` at every tick on each deadline whose time has passed.

    The thread starts with the first deadline and sleeps while there is none.
    """

    def begin(self, deadline: Deadline, seconds: float = 0.0) -> None: ...
    def end(self, deadline: Deadline) -> None: ...
    def restart(self) -> None: ...

WATCHDOG: Final[Watchdog]
