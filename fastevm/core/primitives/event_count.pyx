"""Waits for events of other threads: spins for a while, then sleeps."""

from libc.string cimport memset

from fastevm.core.primitives.intrinsics cimport atomic_publish_int, spin_pause
from fastevm.core.primitives.pthread cimport (
    pthread_cond_broadcast,
    pthread_cond_destroy,
    pthread_cond_init,
    pthread_cond_wait,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_unlock,
)


cdef void event_count_open(EventCount* e) noexcept nogil:
    memset(e, 0, sizeof(EventCount))
    pthread_mutex_init(&e.guard, NULL)
    pthread_cond_init(&e.moved, NULL)


cdef void event_count_close(EventCount* e) noexcept nogil:
    pthread_mutex_destroy(&e.guard)
    pthread_cond_destroy(&e.moved)


cdef void events_advance(EventCount* e) noexcept nogil:
    pthread_mutex_lock(&e.guard)
    atomic_publish_int(&e.count, <int>(<unsigned int>e.count + 1))
    if e.waiting:
        pthread_cond_broadcast(&e.moved)
    pthread_mutex_unlock(&e.guard)


cdef void events_await(EventCount* e, int seen, int spins) noexcept nogil:
    cdef int _spin
    for _spin in range(spins):
        if events_seen(e) != seen:
            return
        spin_pause()
    pthread_mutex_lock(&e.guard)
    e.waiting += 1
    while e.count == seen:
        pthread_cond_wait(&e.moved, &e.guard)
    e.waiting -= 1
    pthread_mutex_unlock(&e.guard)
