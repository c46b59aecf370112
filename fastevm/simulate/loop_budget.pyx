"""Lets the event loop try work that is nearly always short, and stops the work if it takes long.

A counter is odd while work runs. A watcher thread reads it: if an odd number does not change while
the loop's thread uses the processor for BUDGET_NANOSECONDS, the budget is spent. Time in which
other threads have the processor does not count. Each call of `run` costs two increments of the
counter. The watcher reads the counter 2,000 times a second if work ran recently, else 500 times. A
read costs 10 us of processor time, because it wakes a thread.
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
    /* The clock of this thread's processor time, which other threads can read; on systems without
       it, the monotonic clock. */
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
    SHORT_LOOKS = 4           # reads at the short interval after a read during which work ran
    LONG_LOOK_NANOSECONDS = 2_000_000
    IDLE_LOOKS = 100          # reads without any work after which the watcher sleeps
    TURNS = 1 << 30           # the counter wraps to 0 at this number


cdef class LoopBudget:
    """Stops a function that a thread calls with ``run`` after about a millisecond.

    EVM execution in the function stops as if its deadline had expired. The caller then finds
    ``is_spent`` True and repeats the call on another thread, without the limit.
    """

    cdef int turn             # counter, odd while work runs
    cdef clockid_t clock      # processor time of the thread that runs the work
    cdef bint awake           # the watcher reads the counter
    cdef int closed           # the watcher must end; it reads the flag without the GIL
    cdef Deadline deadline
    cdef object wake
    cdef object thread

    def __init__(self) -> None:
        self.deadline = Deadline(is_brief=True)
        self.wake = threading.Event()
        self.thread = None

    def run(self, call, *args):
        """Returns ``call(*args)``, stopped early if the call exceeds the budget."""
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
        """Whether the last `run` was stopped."""
        return self.deadline.is_cancelled

    def close(self) -> None:
        """Ends the watcher thread."""
        atomic_store_int(&self.closed, True)
        self.wake.set()

    def awaken(self) -> None:
        """Starts the watcher thread, or wakes it."""
        self.awake = True
        self.clock = thread_clock()
        if self.thread is None:
            self.thread = threading.Thread(
                target=self.watch, name="fastevm-loop-budget", daemon=True
            )
            self.thread.start()
        self.wake.set()

    def watch(self) -> None:
        """Runs the loop of the watcher thread."""
        cdef int overdue
        while not atomic_load_int(&self.closed):
            with nogil:
                overdue = self.look()
            if overdue:
                if overdue == self.turn:  # the same work: it cannot end while we hold the GIL
                    self.deadline.cancel()
                continue
            self.awake = False
            self.wake.clear()
            if not self.awake and not atomic_load_int(&self.closed):
                self.wake.wait()

    cdef void next_turn(self) noexcept nogil:
        atomic_store_int(&self.turn, (self.turn + 1) & (TURNS - 1))

    cdef int look(self) noexcept nogil:
        """Returns the counter of work that exceeds the budget, or 0 after a long idle time."""
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
        """Returns the processor time of the thread in nanoseconds."""
        cdef timespec now
        clock_gettime(self.clock, &now)
        return <int64_t>now.tv_sec * 1_000_000_000 + now.tv_nsec
