"""Divides the time of the event loop between clients.

A client that uses more than half of the loop for `BURST` seconds is postponed from then on: its
requests are read and answered only after the loop has read the sockets of all other clients.
Requests of clients below this share are answered as their bytes arrive.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

BURST: Final = 0.004  # used seconds of the loop after which a client's share is computed
LARGEST_USE: Final = 0.5  # share of the loop's time above which a client is postponed
TURN_TIME: Final = 0.002  # seconds for postponed clients before other sockets are read


class LoopShare:
    """The used loop time and postponed work of a client, shared by all its connections."""

    __slots__ = ("__weakref__", "began", "is_over", "turns", "used", "waiting")

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.used = 0.0  # used seconds of the loop since `began`
        self.began = perf_counter()
        self.is_over = False  # whether its work is postponed
        self.waiting: deque[Callable[[], object]] = deque()

    def charge(self, began: float, ended: float) -> None:
        """Count the loop time between two values of `perf_counter`, in seconds."""
        self.used += ended - began
        if self.used > BURST:
            self.is_over = self.used > LARGEST_USE * (ended - self.began)
            self.used, self.began = 0.0, ended
            if self.is_over:
                self.turns.end_later(self)

    def run(self, work: Callable[[], T]) -> T:
        """Call ``work`` and count its time."""
        began = perf_counter()
        try:
            return work()
        finally:
            self.charge(began, perf_counter())

    def defer(self, work: Callable[[], object]) -> None:
        """Queue work until it is this client's turn in the rotation over postponed clients."""
        self.waiting.append(work)

    async def result(self, work: Callable[[], T]) -> T:
        """Call ``work``, now or when the rotation reaches this client, and return its result."""
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
    """Keeps the loop shares of all clients, and the clients with postponed work."""

    def __init__(self) -> None:
        self._shares: WeakValueDictionary[str, LoopShare] = WeakValueDictionary()
        self._over: deque[LoopShare] = deque()

    def share_of(self, client: str) -> LoopShare:
        """Return the loop share of a client."""
        share = self._shares.get(client)
        if share is None:
            share = self._shares[client] = LoopShare(self)
        return share

    def end_later(self, share: LoopShare) -> None:
        """Postpone the work of a client until its queue is empty."""
        self._over.append(share)
        if len(self._over) == 1:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        """Run one piece of work of each postponed client in rotation, for `TURN_TIME` seconds."""
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
