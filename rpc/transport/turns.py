"""Divides the time of the event loop between clients.

A client that uses more than half of the loop for `BURST` seconds waits in turn from then on: what
its connections send is read and answered only when the loop has read the sockets of all other
clients. Clients below that share are answered as their bytes come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

BURST: Final = 0.004  # seconds of the loop after which the use of a client is judged
LARGEST_USE: Final = 0.5  # the part of the loop's time that a client may use without waiting
TURN_TIME: Final = 0.002  # seconds for clients that wait, until other sockets are read


class LoopShare:
    """The time that a client has used, and its work that waits. Its connections share this."""

    __slots__ = ("__weakref__", "began", "is_over", "turns", "used", "waiting")

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.used = 0.0  # seconds of the loop since `began`
        self.began = perf_counter()
        self.is_over = False  # its work waits in turn
        self.waiting: deque[Callable[[], object]] = deque()

    def charge(self, began: float, ended: float) -> None:
        """Count the time of the loop between two values of `perf_counter`."""
        self.used += ended - began
        if self.used > BURST:
            self.is_over = self.used > LARGEST_USE * (ended - self.began)
            self.used, self.began = 0.0, ended
            if self.is_over:
                self.turns.end_later(self)

    def run(self, work: Callable[[], T]) -> T:
        """Do work and count its time."""
        began = perf_counter()
        try:
            return work()
        finally:
            self.charge(began, perf_counter())

    def defer(self, work: Callable[[], object]) -> None:
        """Do work when it is this client's turn."""
        self.waiting.append(work)

    async def result(self, work: Callable[[], T]) -> T:
        """The result of work, which waits for this client's turn if it is over its share."""
        if not self.is_over:
            return self.run(work)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def work_now() -> None:
            if future.done():
                return
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)

        self.defer(work_now)
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                unawaited = future.result()
                if asyncio.iscoroutine(unawaited):
                    unawaited.close()
            raise


class Turns:
    """The clients of an event loop, and those whose work waits in turn."""

    def __init__(self) -> None:
        self._shares: WeakValueDictionary[str, LoopShare] = WeakValueDictionary()
        self._over: deque[LoopShare] = deque()

    def share_of(self, client: str) -> LoopShare:
        """The share of a client."""
        share = self._shares.get(client)
        if share is None:
            share = self._shares[client] = LoopShare(self)
        return share

    def end_later(self, share: LoopShare) -> None:
        """Let the work of a client that is over its share wait, until none of it is left."""
        self._over.append(share)
        if len(self._over) == 1:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Do one piece of work of each client in rotation, as long as a turn may take."""
        loop, until = asyncio.get_running_loop(), perf_counter() + TURN_TIME
        while self._over:
            share = self._over[0]
            if share.waiting:
                work = share.waiting.popleft()
                try:
                    work()
                except Exception as error:
                    loop.call_exception_handler({"message": "a request failed", "exception": error})
                self._over.rotate(-1)
            else:
                share.is_over = False
                share.used, share.began = 0.0, perf_counter()
                self._over.popleft()
            if perf_counter() > until:
                break
        if self._over:
            loop.call_soon(self._go_on)
