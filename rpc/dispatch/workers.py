"""Worker threads for execution, bounded in threads and in jobs: the event loop never waits.

There are two lanes. Heavy jobs (simulated chains) never take the last thread, so that a single call
waits for other single calls only. The threads run at a lower priority than the rest of the process:
the builder of slices and the event loop go first. A job whose waiter has left is stopped.
"""

import asyncio
import contextlib
import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from fastevm.rpc.errors import RpcError
from fastevm.simulate import Cancellation

T = TypeVar("T")

LEAST_THREADS: Final = 2  # one of them is always free of heavy jobs
NICENESS: Final = 5  # of worker threads, where the system has it per thread (Linux)
SWITCH_INTERVAL: Final = 0.0005  # seconds that Python code of a worker may keep the loop waiting

COLLECTIONS: Final = (20_000, 20, 50)  # the results of one request are gone before a full one


SMALL_WEIGHT: Final = 64  # objects in an answer that is made on the event loop

_thread: Final = threading.local()


class TooHeavy(Exception):
    """Work that began on the event loop and belongs into a worker."""


def weigh(objects: int) -> None:
    """Say about how many objects the answer will hold: TooHeavy on the loop for a large one."""
    if objects > SMALL_WEIGHT and not getattr(_thread, "is_worker", False):
        raise TooHeavy


def heavy(handler: T) -> T:
    """Mark a handler whose jobs go to the heavy lane."""
    handler.heavy = True  # type: ignore[attr-defined]
    return handler


@dataclass(eq=False, slots=True)
class Job:
    """A call to make in a thread, and the future that waits for it."""

    call: Callable[..., Any]
    args: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    is_heavy: bool = False
    cancellation: Cancellation = field(default_factory=Cancellation)

    def run(self) -> tuple[Any, BaseException | None]:
        """Make the call: its result, or what it raised."""
        try:
            with self.cancellation.active():
                return self.call(*self.args), None
        except BaseException as error:  # whoever waits must learn of everything
            return None, error

    def hand_over(self, result: Any, fault: BaseException | None) -> None:
        """Let the loop know what the call gave."""
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            self.loop.call_soon_threadsafe(self._finish, result, fault)

    def _finish(self, result: Any, fault: BaseException | None) -> None:
        if self.future.done():
            return
        if fault is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(fault)


class Workers:
    """A pool of threads whose queue has a limit.

    ``queue_limit`` counts jobs that run or wait. A job beyond it is refused at once with the
    ``overloaded`` error: a queue that only grows helps nobody.
    """

    def __init__(self, *, threads: int | None = None, queue_limit: int) -> None:
        self.threads = max(threads or os.cpu_count() or 1, LEAST_THREADS)
        self.heavy_limit = self.threads - 1
        self.queue_limit = queue_limit
        self.in_flight = 0
        self._light: deque[Job] = deque()
        self._heavy: deque[Job] = deque()
        self._heavy_running = 0
        self._running: set[Job] = set()
        self._idle: list[threading.Lock] = []  # what each idle thread waits for
        self._closed = False
        self._lock = threading.Lock()
        self._started = False

    async def run(self, call: Callable[..., T], *args: Any, heavy: bool = False) -> T:
        """Run ``call(*args)`` in a thread and return its result; ``heavy`` jobs in their own lane.

        A cancelled waiter takes its job out of the queue, or stops it where it executes code.
        """
        if self.in_flight >= self.queue_limit:
            raise RpcError("overloaded", limit=self.queue_limit)
        loop = asyncio.get_running_loop()
        job = Job(call, args, loop.create_future(), loop, heavy)
        self.in_flight += 1
        self._submit(job)
        try:
            result: T = await job.future
            return result
        except asyncio.CancelledError:
            job.cancellation.cancel()
            raise
        finally:
            self.in_flight -= 1

    def close(self) -> None:
        """Stop the running jobs and drop the waiting ones."""
        with self._lock:
            self._closed = True
            self._light.clear()
            self._heavy.clear()
            for job in self._running:
                job.cancellation.cancel()
            while self._idle:
                self._wake()

    def _submit(self, job: Job) -> None:
        with self._lock:
            if not self._started:
                self._start()
            (self._heavy if job.is_heavy else self._light).append(job)
            if not job.is_heavy or self._heavy_running < self.heavy_limit:
                self._wake()

    def _wake(self) -> None:
        """Let one idle thread look for a job: the one that had the last, its caches are warm."""
        if self._idle:
            self._idle.pop().release()

    def _start(self) -> None:
        self._started = True
        if not gc.get_freeze_count():  # else the builder of slices has taken care of it
            gc.collect()
            gc.freeze()  # what is there by now stays: a full collection need not walk over it
            gc.set_threshold(*COLLECTIONS)
        if sys.getswitchinterval() > SWITCH_INTERVAL:
            sys.setswitchinterval(SWITCH_INTERVAL)
        for number in range(self.threads):
            name = f"fastevm-rpc-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        _thread.is_worker = True
        with contextlib.suppress(OSError, AttributeError):  # not on this system
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        bell = threading.Lock()
        bell.acquire()
        while (job := self._next(bell)) is not None:
            outcome = job.run()
            with self._lock:
                self._running.discard(job)
                if job.is_heavy:
                    self._heavy_running -= 1
                    if self._heavy and self._light:  # else this thread takes the next one
                        self._wake()
            job.hand_over(*outcome)  # at last: the loop wakes for it, and wants the GIL
            del job, outcome

    def _next(self, bell: threading.Lock) -> Job | None:
        """Wait for a job that may run now: light ones first. None at the end."""
        while True:
            with self._lock:
                if self._closed:
                    return None
                job = self._take()
                if job is not None:
                    self._running.add(job)
                    return job
                self._idle.append(bell)
            bell.acquire()

    def _take(self) -> Job | None:
        while self._light:
            job = self._light.popleft()
            if not job.cancellation.is_cancelled:
                return job
        while self._heavy and self._heavy_running < self.heavy_limit:
            job = self._heavy.popleft()
            if not job.cancellation.is_cancelled:
                self._heavy_running += 1
                return job
        return None
