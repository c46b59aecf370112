"""Stops runners that run too long, or whose caller has left: one thread watches all deadlines."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

TICK_SECONDS = 0.02  # a deadline is noticed at most this late


class Cancellable(Protocol):
    """Something that runs without the GIL and stops when told to."""

    def cancel(self) -> None: ...
    def rearm(self) -> None: ...


_local = threading.local()


class Cancellation:
    """Stops whatever a thread runs while it is active there; any thread may ask for that, once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runners: list[Cancellable] = []
        self.is_cancelled = False

    def cancel(self) -> None:
        """Stop what runs, and what begins to run later."""
        with self._lock:
            self.is_cancelled = True
            for runner in self._runners:
                runner.cancel()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let this cancellation count for what this thread runs inside."""
        before = getattr(_local, "cancellation", None)
        _local.cancellation = self
        try:
            yield
        finally:
            _local.cancellation = before

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


class Watchdog:
    """Calls ``cancel`` on whatever is still running when its time is up.

    The thread starts with the first deadline and sleeps while there is none.
    """

    def __init__(self) -> None:
        self._deadlines: dict[int, tuple[float, Cancellable]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, runner: Cancellable, seconds: float) -> Iterator[None]:
        """While the block runs, cancel ``runner`` once ``seconds`` have passed."""
        cancellation: Cancellation | None = getattr(_local, "cancellation", None)
        runner.rearm()
        if cancellation is not None:
            cancellation.add(runner)
        self._begin(runner, time.monotonic() + seconds)
        try:
            yield
        finally:
            with self._lock:
                self._deadlines.pop(id(runner), None)
            if cancellation is not None:
                cancellation.remove(runner)

    def _begin(self, runner: Cancellable, deadline: float) -> None:
        with self._lock:
            self._deadlines[id(runner)] = (deadline, runner)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="fastevm-deadlines", daemon=True
                )
                self._thread.start()
        self._wake.set()

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


WATCHDOG = Watchdog()
