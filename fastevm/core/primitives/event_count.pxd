# Something that happens again and again, and threads that wait for the next time.
#
# Who waits looks at the count first, then at what it waits for, and waits only while the count is
# still the same: so nothing that happens in between is missed.
from fastevm.core.primitives.intrinsics cimport atomic_observe_int
from fastevm.core.primitives.pthread cimport pthread_cond_t, pthread_mutex_t


cdef enum:
    SPINS = 2000              # some 0.1 ms; to put a thread to sleep and wake it takes a third


cdef struct EventCount:
    int count                 # atomic; changed under the guard
    int waiting               # asleep: under the guard
    pthread_mutex_t guard
    pthread_cond_t moved


cdef void event_count_open(EventCount* e) noexcept nogil
cdef void event_count_close(EventCount* e) noexcept nogil
# It happened: whoever waits goes on, and sees what was written before.
cdef void events_advance(EventCount* e) noexcept nogil
# Wait until the count is another one: look so many times, then sleep.
cdef void events_await(EventCount* e, int seen, int spins) noexcept nogil


cdef inline int events_seen(const EventCount* e) noexcept nogil:
    return atomic_observe_int(&e.count)
