"""Stops runners that run too long, or whose caller has left: one thread watches all deadlines."""

from cpython.pythread cimport (
    NOWAIT_LOCK, PyThread_acquire_lock, PyThread_allocate_lock, PyThread_free_lock,
    PyThread_release_lock, PyThread_type_lock, WAIT_LOCK,
)

import threading
import time

from fastevm.core.simulation.values import SimulationError

TICK_SECONDS = 0.02  # a deadline is noticed at most this late


class ThreadValues(threading.local):
    """What belongs to one thread."""

    cancellation = None  # of what runs
    owned = None         # class -> the thread's own object of it


local = ThreadValues()


def out_of_time(seconds: float) -> SimulationError:
    """What a request is refused with that was stopped after so many seconds, or earlier."""
    return SimulationError("timeout", f"execution aborted (timeout = {seconds:g}s)")


def thread_owned(kind: type) -> object:
    """The calling thread's own object of this class; its memory is reused from run to run."""
    owned = local.owned
    if owned is None:
        owned = local.owned = {}
    found = owned.get(kind)
    if found is None:
        found = owned[kind] = kind()
    return found


cdef class Cancellation:
    """Stops whatever a thread runs while it is active there; any thread may ask for that, once.

    ``is_brief``: whoever made it ends it long before any deadline, so that none is watched.
    """

    cdef PyThread_type_lock lock
    cdef list runners
    cdef readonly bint is_brief
    cdef public bint is_cancelled

    def __cinit__(self) -> None:
        self.lock = PyThread_allocate_lock()
        if self.lock == NULL:
            raise MemoryError
        self.runners = []

    def __init__(self, *, is_brief: bool = False) -> None:
        self.is_brief = is_brief

    def __dealloc__(self) -> None:
        if self.lock != NULL:
            PyThread_free_lock(self.lock)

    cdef void acquire(self) noexcept:
        """Whoever has it may wait for the GIL."""
        if not PyThread_acquire_lock(self.lock, NOWAIT_LOCK):
            with nogil:
                PyThread_acquire_lock(self.lock, WAIT_LOCK)

    def cancel(self) -> None:
        """Stop what runs, and what begins to run later."""
        self.acquire()
        try:
            self.is_cancelled = True
            for runner in self.runners:
                runner.cancel()
        finally:
            PyThread_release_lock(self.lock)

    def active(self) -> Active:
        """Let this cancellation count for what this thread runs inside."""
        return Active(self)

    def add(self, runner: object) -> None:
        """Stop this one too from now on."""
        self.acquire()
        try:
            self.runners.append(runner)
            if self.is_cancelled:
                runner.cancel()
        finally:
            PyThread_release_lock(self.lock)

    def remove(self, runner: object) -> None:
        """It has finished: it may belong to another request next."""
        self.acquire()
        try:
            self.runners.remove(runner)
        finally:
            PyThread_release_lock(self.lock)


cdef class Active:
    """The time during which a cancellation counts."""

    cdef Cancellation cancellation
    cdef object before

    def __init__(self, Cancellation cancellation not None) -> None:
        self.cancellation = cancellation

    def __enter__(self) -> None:
        self.before = local.cancellation
        local.cancellation = self.cancellation

    def __exit__(self, *exception: object) -> None:
        local.cancellation = self.before


cdef class Watchdog:
    """Calls ``cancel`` on whatever is still running when its time is up.

    The thread starts with the first deadline and sleeps while there is none.
    """

    cdef dict deadlines  # id of a runner -> its deadline and the runner
    cdef object lock
    cdef object wake
    cdef object thread

    def __init__(self) -> None:
        self.deadlines = {}
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.thread = None

    def watch(self, runner: object, seconds: float) -> Watch:
        """While the block runs, cancel ``runner`` once ``seconds`` have passed."""
        return Watch(self, runner, seconds)

    def begin(self, runner: object, deadline: float) -> None:
        """Note a deadline (monotonic time)."""
        with self.lock:
            self.deadlines[id(runner)] = (deadline, runner)
            if self.thread is None:
                self.thread = threading.Thread(
                    target=keep_deadlines, args=(self,), name="fastevm-deadlines", daemon=True
                )
                self.thread.start()
        if not self.wake.is_set():
            self.wake.set()

    def end(self, runner: object) -> None:
        """Forget a deadline."""
        with self.lock:
            self.deadlines.pop(id(runner), None)

    cdef int keep(self) except -1:
        """The thread's life."""
        while True:
            self.wake.wait()
            with self.lock:
                now = time.monotonic()
                for deadline, runner in self.deadlines.values():
                    if now >= deadline:
                        runner.cancel()
                if not self.deadlines:
                    self.wake.clear()
            time.sleep(TICK_SECONDS)


def keep_deadlines(Watchdog watchdog not None) -> None:
    """What the thread runs; it never ends."""
    watchdog.keep()


cdef class Watch:
    """The time during which a runner is watched."""

    cdef Watchdog watchdog
    cdef object runner
    cdef object seconds
    cdef Cancellation cancellation

    def __init__(self, Watchdog watchdog not None, runner: object, seconds: object) -> None:
        self.watchdog, self.runner, self.seconds = watchdog, runner, seconds
        self.cancellation = local.cancellation

    def __enter__(self) -> None:
        self.runner.rearm()
        if self.cancellation is not None:
            self.cancellation.add(self.runner)
            if self.cancellation.is_brief:
                return
        self.watchdog.begin(self.runner, time.monotonic() + self.seconds)

    def __exit__(self, *exception: object) -> None:
        if self.cancellation is None or not self.cancellation.is_brief:
            self.watchdog.end(self.runner)
        if self.cancellation is not None:
            self.cancellation.remove(self.runner)


WATCHDOG = Watchdog()
