"""Runs calls in worker threads, with limits on threads and jobs. The event loop never waits.

There are two lanes with separate threads. Long jobs (simulated chains, traces, searches of old
logs, dumps of the pool) never use a thread of short jobs, so a short call waits only for short
calls. A short job that may be stopped gets `SHORT_TIME` of processor time; then it restarts in the
lane of long jobs. Both lanes divide their time fairly between clients (`FairQueue`). A client runs
at most N short jobs and N - 1 long jobs on N processors; the other threads of a lane serve other
clients. All threads have the same priority: a thread with little processor time could hold the GIL
for a long time and stop the event loop.

The threads have a lower priority than the event loop and the thread that builds or follows slices.
A job is stopped if nobody waits for its result any more.
"""

import asyncio
import contextlib
import gc
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.fair_queue import FairQueue
from fastevm.rpc.errors import RpcError
from fastevm.simulate import Deadline, LoopBudget

T = TypeVar("T")

LEAST_THREADS: Final = 2
OTHER_CLIENTS: Final = 2  # threads of each lane that a single client cannot occupy
# added to the niceness of worker threads on systems where each thread has its own niceness (Linux)
NICENESS: Final = 5
SWITCH_INTERVAL: Final = 0.0005  # seconds that Python code of a worker may hold the GIL
SHORT_TIME: Final = 0.02  # processor seconds of a short job that may be stopped
LOOK_EVERY: Final = 0.005  # seconds between checks for short jobs above SHORT_TIME

# the young generations free the results of a request, so full collections are rare
COLLECTIONS: Final = (20_000, 20, 50)

LOOP_OBJECTS: Final = 64  # most objects in an answer that is built on the event loop
SHORT_OBJECTS: Final = 16_384  # most objects in an answer that a short job builds

_thread: Final = threading.local()


class NeedsWorker(Exception):
    """Raised for work too large for the event loop. ``is_long``: also too large for a short job."""

    def __init__(self, is_long: bool = False) -> None:
        super().__init__()
        self.is_long = is_long


def require_worker_above_limit(objects: int) -> None:
    """Raise NeedsWorker on the event loop if an answer has more than `LOOP_OBJECTS` objects."""
    if objects > LOOP_OBJECTS:
        require_worker(is_long=objects > SHORT_OBJECTS)


def require_worker(*, is_long: bool = False) -> None:
    """Raise NeedsWorker if this thread runs the event loop; do nothing in a worker."""
    if not is_worker():
        raise NeedsWorker(is_long)


def is_worker() -> bool:
    """Return whether this thread is a worker."""
    return getattr(_thread, "is_worker", False)


def is_stopped() -> bool:
    """Return whether this thread's job was stopped. If so, the last result may be incomplete."""
    job: Job | None = getattr(_thread, "job", None)
    return job is not None and job.deadline.is_cancelled


def long_running(handler: T) -> T:
    """Mark a handler whose calls run in the lane of long jobs."""
    handler.long_running = True  # type: ignore[attr-defined]
    return handler


class Job(Struct, eq=False):
    """A call for a worker thread, and the future of its result.

    If ``is_limited`` is true, the job is stopped after `SHORT_TIME` and restarts as a long job.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    is_limited: bool = False
    is_stopped: bool = False  # stopped because it reached its limit
    deadline: Deadline = field(default_factory=Deadline)
    clock: int | None = None  # processor clock of the thread that runs the job
    started: float = 0.0  # processor seconds of the thread when the job began
    context: Context = field(default_factory=copy_context)  # context variables of the waiting task

    def run(self) -> tuple[Any, BaseException | None]:
        """Run the call. Return (result, None), or (None, exception without traceback)."""
        try:
            with self.deadline.active():
                return self.context.run(self.call, *self.args), None
        except BaseException as error:  # every exception must reach the waiting task
            return None, released(error)

    def hand_over(self, result: Any, fault: BaseException | None) -> None:
        """Pass the result to the event loop."""
        with contextlib.suppress(RuntimeError):  # the loop may already be closed
            self.loop.call_soon_threadsafe(self._finish, result, fault)

    def begin(self) -> None:
        """Record this thread's processor time at the start of the job."""
        self.started = time.thread_time()
        if self.is_limited:
            self.clock = time.pthread_getcpuclockid(threading.get_ident())

    def end(self) -> float:
        """Return the processor seconds that the job has used, in its own thread."""
        self.clock = None
        return time.thread_time() - self.started

    def used(self) -> float:
        """Return the processor seconds that a limited job has used so far. Thread-safe."""
        clock = self.clock
        return 0.0 if clock is None else time.clock_gettime(clock) - self.started

    def _finish(self, result: Any, fault: BaseException | None) -> None:
        if self.future.done():
            return
        if fault is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(fault)


def released(error: BaseException) -> BaseException:
    """Return ``error`` without traceback, cause and context. Their frames keep megabytes alive.

    A frame that refers to an exception in its own traceback forms a reference cycle, which only the
    garbage collector frees.
    """
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class Lane:
    """Threads for short or long jobs, and the queue of waiting jobs.

    At most ``client_limit`` jobs of one client run at the same time. None means no limit.
    """

    def __init__(
        self, name: str, threads: int, niceness: int, client_limit: int | None = None
    ) -> None:
        self.name, self.threads, self.niceness = name, threads, niceness
        self.client_limit = client_limit
        self._jobs: FairQueue[Job] = FairQueue(client_limit)
        self._running: set[Job] = set()
        self._idle: list[threading.Lock] = []  # locks that idle threads wait for
        self._lock = threading.Lock()
        self._is_started = self._is_closed = False

    @property
    def running(self) -> int:
        """Return the number of running jobs."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Return the number of jobs that wait for a thread."""
        return len(self._jobs)

    def submit(self, client: str, job: Job) -> None:
        """Queue a job and wake a thread for it."""
        with self._lock:
            if not self._is_started:
                self._is_started = True
                self._start()
            self._jobs.push(client, job)
            self._wake()

    def stop_overdue(self) -> None:
        """Stop the limited jobs that have used `SHORT_TIME`."""
        with self._lock:
            for job in self._running:
                if job.is_limited and not job.is_stopped and job.used() >= SHORT_TIME:
                    job.is_stopped = True
                    job.deadline.cancel()

    def close(self) -> None:
        """Stop the running jobs and drop the waiting jobs."""
        with self._lock:
            self._is_closed = True
            self._jobs.clear()
            for job in self._running:
                job.deadline.cancel()
            while self._idle:
                self._wake()

    def _wake(self) -> None:
        """Wake the idle thread that worked last, because its caches are warm."""
        if self._idle:
            self._idle.pop().release()

    def _start(self) -> None:
        for number in range(self.threads):
            name = f"fastevm-rpc-{self.name}-{number}"
            threading.Thread(target=self._work, name=name, daemon=True).start()

    def _work(self) -> None:
        _thread.is_worker = True
        if self.niceness:
            lower_priority(self.niceness)
        bell = threading.Lock()
        bell.acquire()
        while (taken := self._next(bell)) is not None:
            client, job = taken
            _thread.job = job
            job.begin()
            outcome = job.run()
            _thread.job = None
            with self._lock:
                self._running.discard(job)
                self._jobs.done(client, job.end())
            job.hand_over(*outcome)  # last, because it wakes the loop, which needs the GIL
            del taken, job, outcome

    def _next(self, bell: threading.Lock) -> tuple[str, Job] | None:
        """Wait for a job that may run now. Return (client, job), or None if the lane is closed."""
        while True:
            with self._lock:
                if self._is_closed:
                    return None
                while (taken := self._jobs.pop()) is not None:
                    client, job = taken
                    if not job.deadline.is_cancelled:
                        self._running.add(job)
                        return taken
                    self._jobs.done(client, 0.0)
                self._idle.append(bell)
            bell.acquire()


class Workers:
    """The short and the long lane of worker threads, with limits on queued jobs.

    ``queue_limit`` limits the jobs that run or wait, ``client_limit`` the jobs of one client
    (`CLIENT`). A job beyond a limit raises RpcError ``overloaded``. ``niceness`` is added to the
    niceness of the threads.
    """

    def __init__(
        self,
        *,
        threads: int | None = None,
        queue_limit: int,
        client_limit: int | None = None,
        niceness: int = NICENESS,
    ) -> None:
        self.threads = max(threads or os.cpu_count() or 1, LEAST_THREADS)
        self.queue_limit = queue_limit
        self.client_limit = queue_limit if client_limit is None else client_limit
        self.in_flight = 0
        self._limited = 0  # number of limited jobs in progress
        self._in_flight_of: Counter[str] = Counter()
        own = self.threads - 1  # most long jobs of one client
        self.short = Lane("short", self.threads + OTHER_CLIENTS, niceness, self.threads)
        self.long = Lane("long", own + OTHER_CLIENTS, niceness, own)
        self._is_started = False
        self.loop_budget = LoopBudget()

    async def run(
        self, call: Callable[..., T], *args: Any, long: bool = False, limited: bool = False
    ) -> T:
        """Run ``call(*args)`` in a thread and return the result. ``long`` selects the long lane."""
        client = CLIENT.get()
        if self.in_flight >= self.queue_limit:
            raise RpcError("overloaded", limit=self.queue_limit)
        if self._in_flight_of[client] >= self.client_limit:
            raise RpcError("overloaded_by_client", limit=self.client_limit)
        self.in_flight += 1
        self._in_flight_of[client] += 1
        result: T
        try:
            if limited and not long:
                job = self._submit(self.short, client, call, args, is_limited=True)
                self._limited += 1
                if self._limited == 1:
                    job.loop.call_later(SHORT_TIME, self._stop_overdue, job.loop)
                try:
                    result = await self._outcome(job)
                except Exception:
                    if not job.is_stopped:
                        raise
                else:
                    if not job.is_stopped:
                        return result
                finally:
                    self._limited -= 1
                long = True
            lane = self.long if long else self.short
            result = await self._outcome(self._submit(lane, client, call, args))
            return result
        finally:
            self.in_flight -= 1
            self._in_flight_of[client] -= 1
            if not self._in_flight_of[client]:
                del self._in_flight_of[client]

    def briefly(self, call: Callable[..., T], *args: Any) -> T:
        """Return ``call(*args)``. Raises NeedsWorker after about a millisecond on the event loop.

        The call may run twice, so its only effect must be its result.
        """
        if getattr(_thread, "is_worker", False):
            return call(*args)
        try:
            return self.loop_budget.run(call, *args)
        finally:
            if self.loop_budget.is_spent:
                require_worker(is_long=True)

    def close(self) -> None:
        """Stop the running jobs and drop the waiting jobs."""
        self.loop_budget.close()
        self.short.close()
        self.long.close()

    async def _outcome(self, job: Job) -> Any:
        try:
            return await job.future
        except asyncio.CancelledError:
            job.deadline.cancel()
            raise

    def _stop_overdue(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stop limited jobs that have used up their time. Repeat while limited jobs exist."""
        self.short.stop_overdue()
        if self._limited:
            loop.call_later(LOOK_EVERY, self._stop_overdue, loop)

    def _submit(
        self,
        lane: Lane,
        client: str,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        is_limited: bool = False,
    ) -> Job:
        if not self._is_started:
            self._is_started = True
            set_up_interpreter()
        loop = asyncio.get_running_loop()
        job = Job(call, args, loop.create_future(), loop, is_limited)
        lane.submit(client, job)
        return job


def lower_priority(niceness: int) -> None:
    """Add to the niceness of this thread if threads have their own niceness (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        thread = threading.get_native_id()
        before = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, before + niceness)


def set_up_interpreter() -> None:
    """Limit how long a worker's Python code and the garbage collector can stop the loop."""
    if not gc.get_freeze_count():  # unless the builder of slices has already frozen them
        gc.collect()
        gc.freeze()  # full collections then skip the objects that exist now
        gc.set_threshold(*COLLECTIONS)
    if sys.getswitchinterval() > SWITCH_INTERVAL:
        sys.setswitchinterval(SWITCH_INTERVAL)
