"""Worker threads for execution, bounded in threads and in jobs: the event loop never waits.

There are two lanes. Long jobs (simulated chains, traces, searches of old logs, dumps of the pool)
never take the last thread, so that a short call waits for short calls only. A short job that may be
stopped gets `SHORT_TIME` of the processor; then it begins anew in the lane of long jobs. Threads
run at a lower priority than the rest of the process, where slices are built or followed: the
builder and the event loop go first. A job whose waiter has left is stopped.
"""

import asyncio
import contextlib
import gc
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from fastevm.rpc.errors import RpcError
from fastevm.simulate import Deadline, LoopBudget

T = TypeVar("T")

LEAST_THREADS: Final = 2  # one of them is always free of long jobs
NICENESS: Final = 5  # of worker threads, where the system has it per thread (Linux)
SWITCH_INTERVAL: Final = 0.0005  # seconds that Python code of a worker may keep the loop waiting
SHORT_TIME: Final = 0.02  # seconds of the processor for a short job that may be stopped

COLLECTIONS: Final = (20_000, 20, 50)  # the results of one request are gone before a full one

LOOP_OBJECTS: Final = 64  # objects in an answer that is made on the event loop
SHORT_OBJECTS: Final = 16_384  # objects in an answer that is made by a short job

_thread: Final = threading.local()


class NeedsWorker(Exception):
    """Work that is too large for the event loop; ``is_long``: for the lane of short jobs too."""

    def __init__(self, is_long: bool = False) -> None:
        super().__init__()
        self.is_long = is_long


def require_worker_above_limit(objects: int) -> None:
    """On the event loop, raise NeedsWorker when an answer holds more than `LOOP_OBJECTS`."""
    if objects > LOOP_OBJECTS:
        require_worker(is_long=objects > SHORT_OBJECTS)


def require_worker(*, is_long: bool = False) -> None:
    """Raise NeedsWorker on the event loop; in a worker, do nothing."""
    if not getattr(_thread, "is_worker", False):
        raise NeedsWorker(is_long)


def is_stopped() -> bool:
    """Whether the job of this thread was stopped: what it has made last may be incomplete."""
    job: Job | None = getattr(_thread, "job", None)
    return job is not None and job.deadline.is_cancelled


def long_running(handler: T) -> T:
    """Mark a handler whose jobs go to the lane of long jobs."""
    handler.long_running = True  # type: ignore[attr-defined]
    return handler


class Job(Struct, eq=False):
    """A call to make in a thread, and the future that waits for it.

    ``is_limited``: it is stopped after `SHORT_TIME` and begins anew as a long job.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    is_long: bool = False
    is_limited: bool = False
    is_stopped: bool = False  # at its limit
    deadline: Deadline = field(default_factory=Deadline)
    clock: int | None = None  # of the thread that runs it
    started: float = 0.0  # by that clock
    context: Context = field(default_factory=copy_context)  # of who waits

    def run(self) -> tuple[Any, BaseException | None]:
        """Make the call: its result, or what it raised without the frames that it went through."""
        try:
            with self.deadline.active():
                return self.context.run(self.call, *self.args), None
        except BaseException as error:  # whoever waits must learn of everything
            return None, released(error)

    def hand_over(self, result: Any, fault: BaseException | None) -> None:
        """Let the loop know what the call gave."""
        with contextlib.suppress(RuntimeError):  # the loop may be closed by now
            self.loop.call_soon_threadsafe(self._finish, result, fault)

    def begin(self) -> None:
        """Note the processor time of this thread."""
        if self.is_limited:
            self.clock = time.pthread_getcpuclockid(threading.get_ident())
            self.started = time.clock_gettime(self.clock)

    def used(self) -> float:
        """Seconds of the processor that the job has had so far."""
        return 0.0 if self.clock is None else time.clock_gettime(self.clock) - self.started

    def _finish(self, result: Any, fault: BaseException | None) -> None:
        if self.future.done():
            return
        if fault is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(fault)


def released(error: BaseException) -> BaseException:
    """``error`` without traceback, cause and context: frames would keep megabytes alive.

    An exception in a frame that it refers to is a circle, which only the collector ends.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class Workers:
    """A pool of threads whose queue has a limit.

    ``queue_limit`` counts jobs that run or wait. A job beyond it is refused at once with the
    ``overloaded`` error.
    """

    def __init__(
        self, *, threads: int | None = None, queue_limit: int, niceness: int = NICENESS
    ) -> None:
        self.niceness = niceness
        self.threads = max(threads or os.cpu_count() or 1, LEAST_THREADS)
        self.long_limit = self.threads - 1
        self.queue_limit = queue_limit
        self.in_flight = 0
        self._short: deque[Job] = deque()
        self._long: deque[Job] = deque()
        self._long_running = 0
        self._running: set[Job] = set()
        self._idle: list[threading.Lock] = []  # what each idle thread waits for
        self._closed = False
        self._lock = threading.Lock()
        self._started = False
        self.loop_budget = LoopBudget()

    async def run(
        self, call: Callable[..., T], *args: Any, long: bool = False, limited: bool = False
    ) -> T:
        """Run ``call(*args)`` in a thread and return its result; ``long`` jobs in their own lane.

        ``limited``: a short job may be stopped and made again as a long one. A cancelled waiter
        takes its job out of the queue, or stops it where it executes code.
        """
        if self.in_flight >= self.queue_limit:
            raise RpcError("overloaded", limit=self.queue_limit)
        self.in_flight += 1
        result: T
        try:
            if limited and not long:
                job = self._submit(call, args, is_limited=True)
                watch = job.loop.call_later(SHORT_TIME, self._stop_at_limit, job)
                try:
                    result = await self._outcome(job)
                except Exception:
                    if not job.is_stopped:
                        raise
                else:
                    if not job.is_stopped:
                        return result
                finally:
                    watch.cancel()
                long = True
            result = await self._outcome(self._submit(call, args, is_long=long))
            return result
        finally:
            self.in_flight -= 1

    def briefly(self, call: Callable[..., T], *args: Any) -> T:
        """``call(*args)``; on the event loop for about a millisecond, then NeedsWorker.

        The call may have no effect but its result.
        """
        if getattr(_thread, "is_worker", False):
            return call(*args)
        try:
            return self.loop_budget.run(call, *args)
        finally:
            if self.loop_budget.is_spent:
                require_worker(is_long=True)

    def close(self) -> None:
        """Stop the running jobs and drop the waiting ones."""
        self.loop_budget.close()
        with self._lock:
            self._closed = True
            self._short.clear()
            self._long.clear()
            for job in self._running:
                job.deadline.cancel()
            while self._idle:
                self._wake()

    async def _outcome(self, job: Job) -> Any:
        try:
            return await job.future
        except asyncio.CancelledError:
            job.deadline.cancel()
            raise

    def _stop_at_limit(self, job: Job) -> None:
        """Stop a short job that has had its time; look again later at one that has not."""
        if job.future.done():
            return
        left = SHORT_TIME - job.used()
        if left > 0:
            job.loop.call_later(max(left, SHORT_TIME / 4), self._stop_at_limit, job)
            return
        job.is_stopped = True
        job.deadline.cancel()

    def _submit(
        self,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        is_long: bool = False,
        is_limited: bool = False,
    ) -> Job:
        loop = asyncio.get_running_loop()
        job = Job(call, args, loop.create_future(), loop, is_long, is_limited)
        with self._lock:
            if not self._started:
                self._start()
            (self._long if is_long else self._short).append(job)
            if not is_long or self._long_running < self.long_limit:
                self._wake()
        return job

    def _wake(self) -> None:
        """Let one idle thread look for a job: the one that had the last, its caches are warm."""
        if self._idle:
            self._idle.pop().release()

    def _start(self) -> None:
        self._started = True
        if not gc.get_freeze_count():  # else the builder of slices has done it
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
        if self.niceness:
            with contextlib.suppress(OSError, AttributeError):  # not on this system
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self.niceness)
        bell = threading.Lock()
        bell.acquire()
        while (job := self._next(bell)) is not None:
            _thread.job = job
            job.begin()
            outcome = job.run()
            _thread.job = job.clock = None
            with self._lock:
                self._running.discard(job)
                if job.is_long:
                    self._long_running -= 1
                    if self._long and self._short:  # else this thread takes the next one
                        self._wake()
            job.hand_over(*outcome)  # at last: the loop wakes for it, and wants the GIL
            del job, outcome

    def _next(self, bell: threading.Lock) -> Job | None:
        """Wait for a job that may run now: short ones first. None at the end."""
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
        while self._short:
            job = self._short.popleft()
            if not job.deadline.is_cancelled:
                return job
        while self._long and self._long_running < self.long_limit:
            job = self._long.popleft()
            if not job.deadline.is_cancelled:
                self._long_running += 1
                return job
        return None
