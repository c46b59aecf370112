"""Deadlines stop a simulation that takes too long, or whose caller has disconnected.

A thread has at most one deadline. Machines read its request at every jump and call. The event
loop's budget and the caller set the request with `Deadline.cancel`; the watchdog, a single thread,
sets it when the time of a deadline has passed. `time_limit` sets an earlier time for one
simulation. All fields are read and written with the GIL, except the request, which machines read
without the GIL.

A forked child has neither the watchdog's thread nor the simulations of other threads: the watchdog
starts again.
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


TICK_SECONDS = 0.02  # period of the watchdog: it notices an expired deadline at most this late


class ThreadValues(threading.local):
    """The thread-local objects of `thread_owned`."""

    owned = None  # class -> the thread's object of this class


local = ThreadValues()


def out_of_time(seconds: float | None) -> SimulationError:
    """Returns the error of a simulation stopped by its limit of ``seconds`` s (None: no limit)."""
    if seconds is None or seconds == INFINITY:
        return SimulationError("timeout", "execution aborted")
    return SimulationError("timeout", f"execution aborted (timeout = {seconds:g}s)")


def thread_owned(kind: type) -> object:
    """Returns the calling thread's object of this class, which all its simulations reuse."""
    owned = local.owned
    if owned is None:
        owned = local.owned = {}
    found = owned.get(kind)
    if found is None:
        found = owned[kind] = kind()
    return found


cdef double monotonic() noexcept:
    """Returns the time of the monotonic clock in seconds."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef Py_ssize_t deadline_count = 0  # threads that have a deadline


cdef bint has_deadline() noexcept:
    # Checks the count first: most processes have no deadline, and reading a thread-local variable
    # takes a call.
    return deadline_count != 0 and current != NULL


cdef Deadline exchange(Deadline deadline):
    global current, deadline_count
    cdef Deadline before = None if current == NULL else <Deadline>current
    current = NULL if deadline is None else <PyObject*>deadline
    deadline_count += (deadline is not None) - (before is not None)
    return before


cdef class Deadline:
    """Stops the simulations of one thread when its time has come.

    Without a time, only `cancel` stops them.

    ``is_brief``: whether the owner cancels the deadline long before any time limit. The watchdog
    ignores such a deadline.
    """

    def __cinit__(self, *args: object, bint is_brief=False) -> None:
        self.is_brief = is_brief
        self.time = INFINITY

    def cancel(self) -> None:
        """Stops the current simulation and all later ones. Any thread may call it."""
        self.is_cancelled = True
        self.stop()

    def expire(self) -> None:
        """Stops the current simulation. The watchdog calls it every tick after the deadline."""
        self.stop()

    def active(self) -> Active:
        """Returns a context manager that makes this the deadline of the calling thread."""
        return Active(self)

    cdef int stop(self) except -1:
        atomic_store_int(&self.request, CANCEL_REQUEST)
        if self.listener is not None:
            self.listener.cancel()
        return 0

    cdef void clear(self) noexcept:
        """Clears the request after an expiry, but not after a cancellation."""
        if not self.is_cancelled:
            atomic_store_int(&self.request, NO_REQUEST)


cdef class Active:
    """The context manager that `Deadline.active` returns."""

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
        """Starts without a thread. In a forked child, keeps the deadlines of the forking thread."""
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
        """Watches a deadline, which expires in ``seconds`` s, or earlier if it already has a time.
        """
        self.arm(deadline, seconds)

    def end(self, Deadline deadline not None) -> None:
        """Stops watching a deadline."""
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
        """Runs the loop of the watchdog's thread."""
        cdef Deadline deadline
        while True:
            self.wake.wait()
            now = monotonic()
            for deadline in list(self.deadlines.values()):
                if now >= deadline.time:
                    deadline.expire()
            if not self.deadlines:
                self.wake.clear()
                if self.deadlines:  # a deadline was added before the event was cleared
                    self.wake.set()
            time.sleep(TICK_SECONDS)


def watch_deadlines(Watchdog watchdog not None) -> None:
    """Runs in the watchdog's thread. Never returns."""
    watchdog.watch()


WATCHDOG = Watchdog()
os.register_at_fork(after_in_child=WATCHDOG.restart)
cdef Watchdog watchdog = WATCHDOG


cdef class TimeLimit:
    """The context manager that `time_limit` returns."""

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
    """Returns a context manager in which ``runner`` stops after ``seconds`` s.

    The runner also stops when the deadline of the thread expires. ``runner.set_deadline`` makes its
    machine read the request of a deadline. The method returns None, or a listener whose ``cancel``
    is called whenever the deadline stops a simulation.
    """
    return TimeLimit(runner, seconds)
