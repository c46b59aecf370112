"""A progress bar on the terminal during long requests to an upstream."""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from time import monotonic
from typing import Any, Final

SHOWN_AFTER_SECONDS: Final = 1.0

# held while a bar is shown, because a terminal shows only one bar at a time
_terminal = threading.Lock()


def _after_fork() -> None:
    """Replaces the lock in a child process, where no thread would release a lock held at the
    fork.
    """
    global _terminal
    _terminal = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Progress:
    """Shows the progress of received answers on a stderr terminal, after one second.

    The display is a bar if rich is installed, otherwise a line that is overwritten.
    """

    def __init__(self, name: str, total: int, *, shown: bool = True) -> None:
        self._name, self._total, self._done = name, total, 0
        self._shows = shown and sys.stderr is not None and sys.stderr.isatty()
        self._since = monotonic() + SHOWN_AFTER_SECONDS
        self._bar: Any = None
        self._line = False

    def advance(self, count: int) -> None:
        """Counts received answers."""
        self._done += count
        self.tick()

    def tick(self) -> None:
        """Updates the display if it is due."""
        if not self._shows or monotonic() < self._since:
            return
        if self._bar is None and not self._line:
            if not _terminal.acquire(blocking=False):
                return
            self._begin()
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)
        else:
            print(f"\r{self._text()}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Removes the display."""
        if self._bar is not None:
            self._bar.stop()
        elif self._line:
            print(f"\r{' ' * len(self._text())}\r", end="", file=sys.stderr, flush=True)
        if self._bar is not None or self._line:
            _terminal.release()
        self._bar, self._line, self._shows = None, False, False

    def _begin(self) -> None:
        try:
            rich, console = import_module("rich.progress"), import_module("rich.console")
        except ImportError:
            self._line = True
            return
        self._bar = rich.Progress(console=console.Console(stderr=True), transient=True)
        self._bar.add_task(f"fetching from {self._name}", total=self._total)
        self._bar.start()

    def _text(self) -> str:
        return f"fetching from {self._name}: {self._done} of {self._total}"
