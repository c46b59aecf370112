"""A timer thread that stops the current transaction when a slice has to close."""

import time
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

IDLE_SECONDS: Final = 10.0  # seconds without a deadline after which the thread ends


class DeadlineTimer:
    """Calls an action at a deadline. The thread is reused for later deadlines."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread: Thread | None = None
        self._deadline = 0.0
        self._action: Callable[[], float | None] | None = None

    def arm(self, deadline: float, action: Callable[[], float | None]) -> None:
        """Calls ``action`` at ``deadline`` (monotonic seconds). The action must be short.

        If the action returns another deadline, it is called again at that time.
        """
        with self._changed:
            self._deadline, self._action = deadline, action
            if self._thread is None:
                self._thread = Thread(target=self._run, name="fastevm-guard", daemon=True)
                self._thread.start()
            self._changed.notify()

    def disarm(self) -> None:
        """Cancels the action. The action does not start after this method has returned."""
        with self._changed:
            self._action = None

    def _run(self) -> None:
        with self._changed:
            while True:
                if self._action is None:
                    if not self._changed.wait(IDLE_SECONDS) and self._action is None:
                        self._thread = None
                        return
                    continue
                left = self._deadline - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                action, self._action = self._action, None
                again = action()
                if again is not None:
                    self._deadline, self._action = again, action
