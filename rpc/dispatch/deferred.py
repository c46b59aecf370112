"""Defers the work of a request until the answer is sent.

While a client reads the hash of its transaction, the node builds the block. The event loop runs
deferred work before it reads the next request, so the next request of any client sees the result.
"""

import logging
from collections.abc import Callable
from threading import get_ident
from typing import Final, TypeVar

log: Final = logging.getLogger("fastevm.rpc")

NO_THREAD: Final = 0
OBJECT: Final = b"{"  # first byte of a body with a single request

T = TypeVar("T")


class Deferred:
    """The deferred work of the request that the event loop is answering."""

    def __init__(self) -> None:
        self._work: list[Callable[[], object]] = []
        self._thread = NO_THREAD  # thread whose request may defer work

    def answering(self, respond: Callable[[bytes, str], T]) -> Callable[[bytes, str], T]:
        """Wraps ``respond`` so that single requests may defer work. Call `run` after each answer.

        The calls of a batch may not defer work, because a later call may read what an earlier call
        changes.
        """

        def answer(body: bytes, client: str) -> T:
            if body[:1] != OBJECT:
                return respond(body, client)
            self._thread = get_ident()
            try:
                return respond(body, client)
            finally:
                self._thread = NO_THREAD

        return answer

    def accept(self, work: Callable[[], object]) -> bool:
        """Keeps work for `run`. Returns False if the caller must do the work itself."""
        if self._thread != get_ident():
            return False
        self._work.append(work)
        return True

    def run(self) -> None:
        """Runs the deferred work, and logs its exceptions."""
        if not self._work:
            return
        work, self._work = self._work, []
        for function in work:
            try:
                function()
            except Exception:
                log.exception("deferred work of a request failed")
