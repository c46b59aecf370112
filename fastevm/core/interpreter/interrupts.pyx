"""Signals during long executions: the machine pauses and Python handles the signal.

The signals are those that programs usually handle, such as SIGINT (Ctrl-C), SIGTERM and SIGALRM.
Python runs signal handlers on the main thread, between two bytecode instructions, and code without
the GIL executes no bytecode. So a C handler calls Python's handler and writes a request, which the
machine checks at jumps. If a program calls `signal.signal`, this replaces our handler. The next
long execution installs our handler again at its first call, or at its first back-edge after a
million gas. Shorter executions skip this check, which is a system call for each signal.
"""

from cpython.exc cimport PyErr_CheckSignals

from fastevm.core.primitives.cancellation cimport LOOK_REQUEST, NO_REQUEST
from fastevm.core.primitives.intrinsics cimport atomic_store_int

import os
from threading import main_thread


cdef extern from "pythread.h" nogil:
    unsigned long PyThread_get_thread_ident()


cdef extern from *:
    """
    #include <signal.h>

    /* The requests that a signal writes. cancellation.pxd defines the same values. */
    enum { FE_CANCEL_REQUEST = 1, FE_PAUSE_REQUEST = 2, FE_WATCHED = 8 };

    static int fe_pause_request;
    /* The cancel flag of an execution that cannot pause, or NULL. A signal cancels the execution,
       which is started again if no handler raises. */
    static int* fe_stop_request;
    static int fe_stopped;
    /* pytest-timeout uses SIGALRM. SIGPROF is left out: profilers raise it a hundred times a
       second. */
    static const int fe_watched[FE_WATCHED] = {
        SIGINT, SIGTERM, SIGALRM, SIGVTALRM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
    };
    static struct sigaction fe_replaced[FE_WATCHED];

    /* Calls Python's handler, which records the signal, before writing the request. The signal may
     * arrive on another thread, and the execution may pause immediately and look for the record. */
    static void fe_on_signal(int number, siginfo_t* info, void* context) {
        int at = 0;
        int* stop;
        while (fe_watched[at] != number) at++;
        if (fe_replaced[at].sa_flags & SA_SIGINFO) fe_replaced[at].sa_sigaction(number, info, context);
        else fe_replaced[at].sa_handler(number);
        __atomic_store_n(&fe_pause_request, FE_PAUSE_REQUEST, __ATOMIC_RELEASE);
        stop = __atomic_load_n(&fe_stop_request, __ATOMIC_RELAXED);
        if (stop) {
            __atomic_store_n(&fe_stopped, 1, __ATOMIC_RELEASE);
            __atomic_store_n(stop, FE_CANCEL_REQUEST, __ATOMIC_RELEASE);
        }
    }

    static void fe_watch_run(int* stop) {
        __atomic_store_n(&fe_stopped, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&fe_stop_request, stop, __ATOMIC_RELAXED);
    }

    static int fe_run_was_stopped(void) {
        __atomic_store_n(&fe_stop_request, (int*)0, __ATOMIC_RELAXED);
        return __atomic_exchange_n(&fe_stopped, 0, __ATOMIC_RELAXED);
    }

    static int fe_is_ours(const struct sigaction* action) {
        return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == fe_on_signal;
    }

    /* Installs our handler for signals that have a handler; default actions stay. */
    static void fe_watch_signals(void) {
        for (int at = 0; at < FE_WATCHED; at++) {
            struct sigaction found;
            if (sigaction(fe_watched[at], NULL, &found) != 0 || fe_is_ours(&found)) continue;
            if (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN) continue;
            fe_replaced[at] = found;
            found.sa_flags |= SA_SIGINFO;
            found.sa_sigaction = fe_on_signal;
            sigaction(fe_watched[at], &found, NULL);
        }
    }
    """
    int pause_request "fe_pause_request"
    void watch_signals "fe_watch_signals"() nogil
    void watch_run "fe_watch_run"(int* stop) nogil
    int run_was_stopped "fe_run_was_stopped"() nogil


cdef bint is_unwatched = False  # a long execution has started and not checked the handlers yet
cdef bint is_watching = False  # the main thread is in an execution that cannot pause
cdef unsigned long main_ident = main_thread().ident


def find_main_thread() -> None:
    """Runs in the child after ``os.fork``: the thread that forked is its main thread."""
    global main_ident
    main_ident = main_thread().ident


os.register_at_fork(after_in_child=find_main_thread)


cdef void begin_interruptible(Machine* m, bint is_long) noexcept:
    global is_unwatched
    if PyThread_get_thread_ident() == main_ident:
        m.cancel = <const bint*>&pause_request
        if is_long:
            is_unwatched = True
            atomic_store_int(&pause_request, LOOK_REQUEST)


cdef bint begin_stoppable(bint* cancelled, bint is_long) except -1:
    global is_watching
    if is_watching or PyThread_get_thread_ident() != main_ident:
        return False
    if is_long:
        watch_signals()
    watch_run(<int*>cancelled)
    if is_long:
        try:
            PyErr_CheckSignals()  # handles a signal that arrived before `watch_run`
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


# Also handles signals that arrived before our handlers were installed and wrote no request.
cdef int serve_signals() except -1:
    global is_unwatched
    atomic_store_int(&pause_request, NO_REQUEST)
    if is_unwatched and PyThread_get_thread_ident() == main_ident:
        is_unwatched = False
        watch_signals()
    return PyErr_CheckSignals()
