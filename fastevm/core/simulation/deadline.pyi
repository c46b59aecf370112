"""Deadlines: what stops a run that takes too long, or whose caller has left."""

from contextlib import AbstractContextManager
from typing import Final, Protocol, TypeVar, final

from fastevm.core.simulation.values import SimulationError

T = TypeVar("T")

TICK_SECONDS: float

class Listener(Protocol):
    """Something that does not read the request of a deadline and is called instead."""

    def cancel(self) -> None: ...

class Stoppable(Protocol):
    """Something that runs without the GIL and reads the request of a deadline."""

    def set_deadline(self, deadline: Deadline) -> Listener | None: ...

def out_of_time(seconds: float | None) -> SimulationError: ...
def thread_owned(kind: type[T]) -> T: ...
def time_limit(runner: Stoppable, seconds: float) -> AbstractContextManager[None]: ...

class Deadline:
    """When the runs of a thread must stop. Without a time, only `cancel` stops them.

    ``is_brief``: its owner cancels it long before any time limit, so the watchdog ignores it.
    """

    @property
    def is_cancelled(self) -> bool: ...
    @property
    def is_brief(self) -> bool: ...
    def __init__(self, *, is_brief: bool = False) -> None: ...
    def cancel(self) -> None: ...
    def expire(self) -> None:
        """Stop what runs: its time has passed. Called at every tick from then on."""
    def active(self) -> AbstractContextManager[None]: ...

@final
class Watchdog:
    """Calls `Deadline.expire` at every tick on each deadline whose time has passed."""

    def begin(self, deadline: Deadline, seconds: float = 0.0) -> None: ...
    def end(self, deadline: Deadline) -> None: ...
    def restart(self) -> None: ...

WATCHDOG: Final[Watchdog]
