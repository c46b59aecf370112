"""Deadlines: what stops a run that takes too long, or whose caller has left.

A thread has at most one deadline. Machines read its request at every jump and call. Three things
set it: the event loop's budget and the caller (`Deadline.cancel`), and the watchdog, one thread
that looks at all deadlines with a time. `time_limit` moves the time forward for one run. All
fields are read and written with the GIL, except the request, which machines read without it.

A forked child has neither the watchdog's thread nor the other threads' runs: it starts anew.
"""

from cpython.object cimport PyObject
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from fastevm.core.primitives.cancellation cimport CANCEL_REQUEST, NO_REQUEST
from fastevm.core.primitives.intrinsics cimport atomic_store_int

import os
import threading
import time

from fastevm.core.simulation.values import SimulationError


cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()


cdef extern from *:
    """
    #include <math.h>
    static __thread PyObject *fe_deadline_of_thread = NULL;  /* whoever sets it owns it */
    """
    PyObject* current "fe_deadline_of_thread"
    double INFINITY


TICK_SECONDS = 0.02  # an expired deadline is noticed at most this late


class ThreadValues(threading.local):
    """What belongs to one thread."""

    owned = None  # class -> the thread's own object of it


local = ThreadValues()


def out_of_time(seconds: float | None) -> SimulationError:
    """The error of a run that was stopped after ``seconds`` or earlier; None: it had no limit."""
    if seconds is None or seconds == INFINITY:
        return SimulationError("timeout", "execution aborted")
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


cdef double monotonic() noexcept:
    """Seconds."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef bint has_deadline() noexcept:
    return current != NULL


cdef Deadline exchange(Deadline deadline):
    global current
    cdef Deadline before = None if current == NULL else <Deadline>current
    current = NULL if deadline is None else <PyObject*>deadline
    return before


cdef class Deadline:
    """When the runs of a thread must stop. Without a time, only `cancel` stops them.

    ``is_brief``: its owner cancels it long before any time limit, so the watchdog ignores it.
    """

    def __cinit__(self, *args: object, bint is_brief=False) -> None:
        self.is_brief = is_brief
        self.time = INFINITY

    def cancel(self) -> None:
        """Stop what runs, and what begins to run later; any thread may call it."""
        self.is_cancelled = True
        self.stop()

    def expire(self) -> None:
        """Stop what runs: its time has passed. Called at every tick from then on."""
        self.stop()

    def active(self) -> Active:
        """A context in which this is the deadline of the calling thread."""
        return Active(self)

    cdef int stop(self) except -1:
        atomic_store_int(&self.request, CANCEL_REQUEST)
        if self.listener is not None:
            self.listener.cancel()
        return 0

    cdef void clear(self) noexcept:
        """Clears an expiry. The owner of the deadline may also clear a cancellation."""
        if not self.is_cancelled:
            atomic_store_int(&self.request, NO_REQUEST)


cdef class Active:
    """The context of `Deadline.active`."""

    cdef Deadline deadline
    cdef Deadline before

    def __init__(self, Deadline deadline not None) -> None:
        self.deadline = deadline

    def __enter__(self) -> None:
        self.before = exchange(self.deadline)

    def __exit__(self, *exception: object) -> None:
        exchange(self.before)


cdef class Watchdog:
    """Calls `Deadline.expire` at every tick on each deadline whose time has passed.

    The thread starts with the first deadline and sleeps while there is none.
    """

    cdef dict deadlines  # id -> deadline
    cdef object lock
    cdef object wake
    cdef object thread

    def __init__(self) -> None:
        self.deadlines = {}
        self.restart()

    def restart(self) -> None:
        """Begin without a thread. In a forked child, keep the deadlines of the forking thread."""
        cdef unsigned long own = PyThread_get_thread_ident()
        cdef Deadline deadline
        self.lock = threading.Lock()
        self.wake = threading.Event()
        self.thread = None
        for deadline in list(self.deadlines.values()):
            if deadline.thread != own:
                self.end(deadline)
        if self.deadlines:
            self.awaken()

    def begin(self, Deadline deadline not None, seconds: float = 0.0) -> None:
        """Watch a deadline whose time comes in ``seconds``, or earlier if it has a time."""
        self.arm(deadline, seconds)

    def end(self, Deadline deadline not None) -> None:
        """Forget a deadline."""
        self.deadlines.pop(id(deadline), None)

    cdef int arm(self, Deadline deadline, double seconds) except -1:
        deadline.time = min(deadline.time, monotonic() + seconds)
        deadline.thread = PyThread_get_thread_ident()
        self.deadlines[id(deadline)] = deadline
        if not self.wake.is_set():
            self.awaken()
        return 0

    cdef int awaken(self) except -1:
        with self.lock:
            if self.thread is None:
                self.thread = threading.Thread(
                    target=watch_deadlines, args=(self,), name="fastevm-deadlines", daemon=True
                )
                self.thread.start()
        self.wake.set()
        return 0

    cdef int watch(self) except -1:
        """The thread's life."""
        cdef Deadline deadline
        while True:
            self.wake.wait()
            now = monotonic()
            for deadline in list(self.deadlines.values()):
                if now >= deadline.time:
                    deadline.expire()
            if not self.deadlines:
                self.wake.clear()
                if self.deadlines:  # one came before the wake was cleared
                    self.wake.set()
            time.sleep(TICK_SECONDS)


def watch_deadlines(Watchdog watchdog not None) -> None:
    """What the watchdog's thread runs; it never ends."""
    watchdog.watch()


WATCHDOG = Watchdog()
os.register_at_fork(after_in_child=WATCHDOG.restart)
cdef Watchdog watchdog = WATCHDOG


cdef class TimeLimit:
    """The context of `time_limit`."""

    def __init__(self, runner: object, double seconds) -> None:
        self.runner, self.seconds = runner, seconds

    def __enter__(self) -> None:
        cdef Deadline deadline = None if current == NULL else <Deadline>current
        if deadline is None:
            deadline = thread_owned(Deadline)
        self.deadline = deadline
        self.time_before, self.listener_before = deadline.time, deadline.listener
        deadline.listener = self.runner.set_deadline(deadline)
        if deadline.is_cancelled and deadline.listener is not None:
            deadline.listener.cancel()
        if not deadline.is_brief:
            watchdog.arm(deadline, self.seconds)

    def __exit__(self, *exception: object) -> None:
        cdef Deadline deadline = self.deadline
        deadline.listener = self.listener_before
        if deadline.is_brief:
            return
        deadline.time = self.time_before
        if deadline.time == INFINITY:
            watchdog.end(deadline)
        deadline.clear()


def time_limit(runner: object, seconds: float) -> TimeLimit:
    """A context in which ``runner`` stops after ``seconds``, or when its thread's deadline passes.

    ``runner.set_deadline`` points its machine at the request of a deadline. What it returns, if not
    None, is a listener: its ``cancel`` is called whenever the deadline stops a run.
    """
    return TimeLimit(runner, seconds)
