"""Lets a thread that must not wait try work that is nearly always short, and stops it if it is not.

A watcher thread reads a number that is odd while something runs: the budget is spent when an odd
number has not changed while its thread used the processor for a while. Time in which other threads
had the processor does not count. A run costs two increments, the watcher two thousand reads a
second around those at which something ran, else five hundred: each wakes a thread, which costs ten
microseconds of the processor.
"""

from libc.stdint cimport int64_t
from posix.time cimport clock_gettime, clockid_t, nanosleep, timespec

from fastevm.core.primitives.intrinsics cimport atomic_load_int, atomic_store_int

from fastevm.core.simulation.deadline cimport Deadline, exchange

import threading


cdef extern from *:
    """
    #include <pthread.h>
    #include <time.h>
    /* The processor time of this thread, for other threads to read; the time of day elsewhere. */
    static clockid_t fe_thread_clock(void) {
        clockid_t clock = CLOCK_MONOTONIC;
    #if defined(__linux__)
        if (pthread_getcpuclockid(pthread_self(), &clock)) clock = CLOCK_MONOTONIC;
    #endif
        return clock;
    }
    """
    clockid_t thread_clock "fe_thread_clock"() noexcept nogil


cdef enum:
    LOOK_NANOSECONDS = 500_000
    BUDGET_NANOSECONDS = 800_000
    SHORT_LOOKS = 4           # after one at which something ran
    LONG_LOOK_NANOSECONDS = 2_000_000
    IDLE_LOOKS = 100          # without any run until the watcher rests
    TURNS = 1 << 30           # after which their number begins anew


cdef class LoopBudget:
    """What one thread runs through ``run`` is stopped after about a millisecond.

    Whatever executes code below stops as if its deadline had passed; ``is_spent`` then says that it
    was this, and the caller does the work again where it may last.
    """

    cdef int turn             # odd while something runs
    cdef clockid_t clock      # of the thread that runs
    cdef bint awake
    cdef int closed           # another thread reads it without the GIL
    cdef Deadline deadline
    cdef object wake
    cdef object thread

    def __init__(self) -> None:
        self.deadline = Deadline(is_brief=True)
        self.wake = threading.Event()
        self.thread = None

    def run(self, call, *args):
        """``call(*args)``, stopped early if it lasts."""
        cdef Deadline before
        self.deadline.is_cancelled = False
        self.deadline.clear()
        if not self.awake:
            self.awaken()
        before = exchange(self.deadline)
        self.next_turn()
        try:
            return call(*args)
        finally:
            self.next_turn()
            exchange(before)

    @property
    def is_spent(self) -> bool:
        """Whether the last run was stopped."""
        return self.deadline.is_cancelled

    def close(self) -> None:
        """End the watcher."""
        atomic_store_int(&self.closed, True)
        self.wake.set()

    def awaken(self) -> None:
        """Start the watcher, or wake it from its rest."""
        self.awake = True
        self.clock = thread_clock()
        if self.thread is None:
            self.thread = threading.Thread(
                target=self.watch, name="fastevm-loop-budget", daemon=True
            )
            self.thread.start()
        self.wake.set()

    def watch(self) -> None:
        """The watcher's life."""
        cdef int overdue
        while not atomic_load_int(&self.closed):
            with nogil:
                overdue = self.look()
            if overdue:
                if overdue == self.turn:  # the runner cannot have gone on: we hold the GIL
                    self.deadline.cancel()
                continue
            self.awake = False
            self.wake.clear()
            if not self.awake and not atomic_load_int(&self.closed):
                self.wake.wait()

    cdef void next_turn(self) noexcept nogil:
        atomic_store_int(&self.turn, (self.turn + 1) & (TURNS - 1))

    cdef int look(self) noexcept nogil:
        """The number of a run that lasts too long; 0 after a long time without any."""
        cdef timespec pause
        cdef int before = 0, turn, idle = 0, looks = 0
        cdef int64_t since = 0, now
        pause.tv_sec = 0
        while idle < IDLE_LOOKS and not atomic_load_int(&self.closed):
            pause.tv_nsec = LOOK_NANOSECONDS if looks < SHORT_LOOKS else LONG_LOOK_NANOSECONDS
            nanosleep(&pause, NULL)
            turn = atomic_load_int(&self.turn)
            looks = 0 if turn & 1 else looks + 1
            idle = idle + 1 if turn == before and turn & 1 == 0 else 0
            if turn & 1:
                now = self.used()
                if turn != before:
                    since = now
                elif now - since >= BUDGET_NANOSECONDS - LOOK_NANOSECONDS:
                    return turn
            before = turn
        return 0

    cdef int64_t used(self) noexcept nogil:
        """Nanoseconds that the thread has had the processor."""
        cdef timespec now
        clock_gettime(self.clock, &now)
        return <int64_t>now.tv_sec * 1_000_000_000 + now.tv_nsec
