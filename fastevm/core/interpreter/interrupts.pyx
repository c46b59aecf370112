"""Ctrl-C and SIGTERM during long executions: the machine pauses and Python handles the signal.

Python runs signal handlers on the main thread, between two of its own instructions, and code
without the GIL runs none of these. A C handler in front of Python's handler writes a request that
the machine checks at jumps. `signal.signal` replaces our handler; the next long execution notices
this at a back-edge or call (two system calls). Executions of a fraction of a second skip the check.
"""

from cpython.exc cimport PyErr_CheckSignals

from fastevm.core.primitives.cancellation cimport LOOK_REQUEST, NO_REQUEST
from fastevm.core.primitives.intrinsics cimport atomic_store_int

import os
from threading import main_thread


cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()


cdef extern from "fastevm/core/interpreter/interrupts.h" nogil:
    int pause_request "fe_pause_request"
    void watch_signals "fe_watch_signals"()
    void watch_run "fe_watch_run"(int* stop)
    int run_was_stopped "fe_run_was_stopped"()


cdef bint is_unwatched = False  # a long execution started; handlers are unchecked
cdef bint is_watching = False  # an execution of the main thread that cannot pause is in progress
cdef unsigned long main_ident = main_thread().ident


def find_main_thread() -> None:
    """Runs after a fork: the forking thread is the main thread of the child."""
    global main_ident
    main_ident = main_thread().ident


os.register_at_fork(after_in_child=find_main_thread)


cdef int begin_interruptible(Machine* m, bint is_long) except -1:
    global is_unwatched
    m.cancel = NULL
    if PyThread_get_thread_ident() == main_ident:
        m.cancel = <const bint*>&pause_request
        if is_long:
            is_unwatched = True
            atomic_store_int(&pause_request, LOOK_REQUEST)
    return 0


cdef bint begin_stoppable(bint* cancelled, bint is_long) except -1:
    global is_watching
    if is_watching or PyThread_get_thread_ident() != main_ident:
        return False
    if is_long:
        watch_signals()
    watch_run(<int*>cancelled)
    if is_long:
        try:
            PyErr_CheckSignals()  # a signal before watching started has cancelled nothing
        except BaseException:
            run_was_stopped()
            raise
    is_watching = True
    return True


cdef bint end_stoppable(bint* cancelled) except -1:
    global is_watching
    is_watching = False
    if not run_was_stopped():
        return False
    atomic_store_int(<int*>cancelled, NO_REQUEST)
    serve_signals()
    return True


cdef void drop_stoppable() noexcept:
    global is_watching
    is_watching = False
    run_was_stopped()


# A signal before watching started has written no request, but is handled as well.
cdef int serve_signals() except -1:
    global is_unwatched
    atomic_store_int(&pause_request, NO_REQUEST)
    if is_unwatched and PyThread_get_thread_ident() == main_ident:
        is_unwatched = False
        watch_signals()
    return PyErr_CheckSignals()
