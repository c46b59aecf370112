"""Stops runners that run too long, or whose caller has left: one thread watches all deadlines."""

import threading
import time
from typing import Any, Protocol, TypeVar

from fastevm.simulate.values import SimulationError

TICK_SECONDS = 0.02  # a deadline is noticed at most this late


class Cancellable(Protocol):
    """Something that runs without the GIL and stops when told to."""

    def cancel(self) -> None: ...
    def rearm(self) -> None: ...


class _Thread(threading.local):
    """What belongs to one thread."""

    cancellation: "Cancellation | None" = None  # of what runs
    owned: dict[type[Any], Any] | None = None  # class -> the thread's own object of it


_local = _Thread()
T = TypeVar("T")


def out_of_time(seconds: float) -> SimulationError:
    """What a request is refused with that was stopped after so many seconds, or earlier."""
    return SimulationError("timeout", f"execution aborted (timeout = {seconds:g}s)")


def thread_owned(kind: type[T]) -> T:
    """The calling thread's own object of this class; its memory is reused from run to run."""
    owned = _local.owned
    if owned is None:
        owned = _local.owned = {}
    found: T | None = owned.get(kind)
    if found is None:
        found = owned[kind] = kind()
    return found


class Cancellation:
    """Stops whatever a thread runs while it is active there; any thread may ask for that, once.

    ``is_brief``: whoever made it ends it long before any deadline, so that none is watched.
    """

    def __init__(self, *, is_brief: bool = False) -> None:
        self._lock = threading.Lock()
        self._runners: list[Cancellable] = []
        self.is_brief = is_brief
        self.is_cancelled = False

    def cancel(self) -> None:
        """Stop what runs, and what begins to run later."""
        with self._lock:
            self.is_cancelled = True
            for runner in self._runners:
                runner.cancel()

    def active(self) -> "_Active":
        """Let this cancellation count for what this thread runs inside."""
        return _Active(self)

    def add(self, runner: Cancellable) -> None:
        """Stop this one too from now on."""
        with self._lock:
            self._runners.append(runner)
            if self.is_cancelled:
                runner.cancel()

    def remove(self, runner: Cancellable) -> None:
        """It has finished: it may belong to another request next."""
        with self._lock:
            self._runners.remove(runner)


class _Active:
    """The time during which a cancellation counts. (A generator would cost twice as much.)"""

    __slots__ = ("before", "cancellation")

    def __init__(self, cancellation: Cancellation) -> None:
        self.cancellation = cancellation

    def __enter__(self) -> None:
        self.before = _local.cancellation
        _local.cancellation = self.cancellation

    def __exit__(self, *exception: object) -> None:
        _local.cancellation = self.before


class Watchdog:
    """Calls ``cancel`` on whatever is still running when its time is up.

    The thread starts with the first deadline and sleeps while there is none.
    """

    def __init__(self) -> None:
        self._deadlines: dict[int, tuple[float, Cancellable]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, runner: Cancellable, seconds: float) -> "_Watch":
        """While the block runs, cancel ``runner`` once ``seconds`` have passed."""
        return _Watch(self, runner, seconds)

    def begin(self, runner: Cancellable, deadline: float) -> None:
        """Note a deadline (monotonic time)."""
        with self._lock:
            self._deadlines[id(runner)] = (deadline, runner)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="fastevm-deadlines", daemon=True
                )
                self._thread.start()
        if not self._wake.is_set():
            self._wake.set()

    def end(self, runner: Cancellable) -> None:
        """Forget a deadline."""
        with self._lock:
            self._deadlines.pop(id(runner), None)

    def _run(self) -> None:
        while True:
            self._wake.wait()
            with self._lock:
                now = time.monotonic()
                for deadline, runner in self._deadlines.values():
                    if now >= deadline:
                        runner.cancel()
                if not self._deadlines:
                    self._wake.clear()
            time.sleep(TICK_SECONDS)


class _Watch:
    """The time during which a runner is watched."""

    __slots__ = ("cancellation", "runner", "seconds", "watchdog")

    def __init__(self, watchdog: Watchdog, runner: Cancellable, seconds: float) -> None:
        self.watchdog, self.runner, self.seconds = watchdog, runner, seconds
        self.cancellation = _local.cancellation

    def __enter__(self) -> None:
        self.runner.rearm()
        if self.cancellation is not None:
            self.cancellation.add(self.runner)
            if self.cancellation.is_brief:
                return
        self.watchdog.begin(self.runner, time.monotonic() + self.seconds)

    def __exit__(self, *exception: object) -> None:
        if self.cancellation is None or not self.cancellation.is_brief:
            self.watchdog.end(self.runner)
        if self.cancellation is not None:
            self.cancellation.remove(self.runner)


WATCHDOG = Watchdog()
