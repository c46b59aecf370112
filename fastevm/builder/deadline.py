"""One thread that does something at a deadline unless it is called off before."""

import time
from collections.abc import Callable
from threading import Condition, Thread


class Guard:
    """Watches one deadline at a time; the thread starts with the first and lives on."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread: Thread | None = None
        self._deadline = 0.0
        self._action: Callable[[], None] | None = None

    def arm(self, deadline: float, action: Callable[[], None]) -> None:
        """Call ``action`` at ``deadline`` (monotonic seconds); it must be short."""
        with self._changed:
            self._deadline, self._action = deadline, action
            if self._thread is None:
                self._thread = Thread(target=self._run, name="fastevm-guard", daemon=True)
                self._thread.start()
            self._changed.notify()

    def disarm(self) -> None:
        """Once this returns the action does not begin any more."""
        with self._changed:
            self._action = None

    def _run(self) -> None:
        with self._changed:
            while True:
                if self._action is None:
                    self._changed.wait()
                    continue
                left = self._deadline - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                action, self._action = self._action, None
                action()
