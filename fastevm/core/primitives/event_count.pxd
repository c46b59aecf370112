# An event count: threads wait until another thread reports the next event.
#
# A waiter reads the count first, then checks its condition, and waits only while the count is
# unchanged. So it cannot miss an event that happens in between.
from fastevm.core.primitives.intrinsics cimport atomic_observe_int
from fastevm.core.primitives.pthread cimport pthread_cond_t, pthread_mutex_t


cdef enum:
    # polls before a thread sleeps: about 0.1 ms, three times as long as sleeping and waking
    SPINS = 2000


cdef struct EventCount:
    int count                 # number of events; atomic, changed with the guard held
    int waiting               # number of sleeping threads; only with the guard held
    pthread_mutex_t guard
    pthread_cond_t moved


cdef void event_count_open(EventCount* e) noexcept nogil
cdef void event_count_close(EventCount* e) noexcept nogil
# Reports an event and wakes all waiters, which see all writes made before.
cdef void events_advance(EventCount* e) noexcept nogil
# Waits until the count differs from `seen`: spins a number of times, then sleeps.
cdef void events_await(EventCount* e, int seen, int spins) noexcept nogil


cdef inline int events_seen(const EventCount* e) noexcept nogil:
    return atomic_observe_int(&e.count)
