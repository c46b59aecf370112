/* Lets code without the GIL notice signals that Python handles. */
#ifndef FASTEVM_INTERRUPTS_H
#define FASTEVM_INTERRUPTS_H

#include <signal.h>

/* The request that a signal writes: PAUSE_REQUEST of cancellation.pxd. */
enum { FE_CANCEL_REQUEST = 1, FE_PAUSE_REQUEST = 2, FE_WATCHED = 2 };

static int fe_pause_request;
/* The flag of an execution that cannot pause: a signal cancels it, and it restarts if no handler
   raises. */
static int* fe_stop_request;
static int fe_stopped;
static const int fe_watched[FE_WATCHED] = {SIGINT, SIGTERM};
static struct sigaction fe_replaced[FE_WATCHED];

/* Python's handler records the signal before the request is written: an execution that pauses
 * immediately, on another thread than the one that got the signal, finds it recorded. */
static void fe_on_signal(int number, siginfo_t* info, void* context) {
    int at = number == fe_watched[0] ? 0 : 1;
    int* stop;
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

/* Installs our handler in front of Python's handlers; default actions of signals stay in place. */
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

#endif
