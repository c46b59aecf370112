"""What a request leaves to be done as soon as its answer is on its way.

While a client reads the hash of its transaction, the block of it is built. Nothing comes between on
the event loop: the next request, of whichever client, finds the work done.
"""

import logging
from collections.abc import Callable
from threading import get_ident
from typing import Final, TypeVar

log: Final = logging.getLogger("fastevm.rpc")

NO_THREAD: Final = 0
OBJECT: Final = b"{"  # how the body of a single request begins

T = TypeVar("T")


class Afterwards:
    """The work of the request that the event loop answers at the moment."""

    def __init__(self) -> None:
        self._work: list[Callable[[], object]] = []
        self._thread = NO_THREAD  # whose request may leave some

    def answering(self, respond: Callable[[bytes, str], T]) -> Callable[[bytes, str], T]:
        """``respond``, whose single requests may leave work; `run` must follow each call.

        The calls of a batch may not: one may ask for what another has done.
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

    def put_off(self, work: Callable[[], object]) -> bool:
        """Leave work to `run`; False where the caller must do it itself."""
        if self._thread != get_ident():
            return False
        self._work.append(work)
        return True

    def run(self) -> None:
        """Do what was left; what fails is logged."""
        if not self._work:
            return
        work, self._work = self._work, []
        for one in work:
            try:
                one()
            except Exception:
                log.exception("what a request left to be done has failed")
