"""Work in stages: threads that find a stage taken spin for a while, then sleep, until it ends."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from fastevm.primitives.intrinsics cimport (
    atomic_decrement,
    atomic_increment,
    atomic_observe_int,
    atomic_publish_int,
    spin_pause,
)
from fastevm.primitives.pthread cimport (
    pthread_cond_broadcast,
    pthread_cond_destroy,
    pthread_cond_init,
    pthread_cond_t,
    pthread_cond_wait,
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)
from fastevm.primitives.team cimport team_run


cdef enum:
    SPINS = 2000              # before a thread sleeps that has nothing to do


cdef struct Course:
    Stage* stages
    int count
    void* context
    int at                    # the stage that runs now: atomic, changed under the guard
    pthread_mutex_t guard
    pthread_cond_t moved
    int waiting


cdef void enter(Course* c, int at) noexcept nogil:
    """Begin this stage, or the first one after it that has items."""
    while at < c.count and c.stages[at].count == 0:
        if c.stages[at].end != NULL:
            c.stages[at].end(c.context)
        at += 1
    if at < c.count:
        c.stages[at].left = c.stages[at].count
    pthread_mutex_lock(&c.guard)
    atomic_publish_int(&c.at, at)
    if c.waiting:
        pthread_cond_broadcast(&c.moved)
    pthread_mutex_unlock(&c.guard)


cdef void leave(Course* c, int at) noexcept nogil:
    """End a stage whose items have all ended."""
    if c.stages[at].end != NULL:
        c.stages[at].end(c.context)
    enter(c, at + 1)


cdef void wait_for_the_end(Course* c, int at) noexcept nogil:
    cdef int _spin
    for _spin in range(SPINS):
        if atomic_observe_int(&c.at) != at:
            return
        spin_pause()
    pthread_mutex_lock(&c.guard)
    c.waiting += 1
    while atomic_observe_int(&c.at) == at:
        pthread_cond_wait(&c.moved, &c.guard)
    c.waiting -= 1
    pthread_mutex_unlock(&c.guard)


cdef void work(void* context, int member) noexcept nogil:
    cdef Course* c = <Course*>context
    cdef Stage* stage
    cdef int64_t item
    cdef int at = atomic_observe_int(&c.at)
    while at < c.count:
        stage = &c.stages[at]
        item = atomic_increment(&stage.taken) - 1
        if item >= stage.count:
            wait_for_the_end(c, at)
        else:
            stage.item(c.context, member, item)
            if atomic_decrement(&stage.left) == 0:
                leave(c, at)
        at = atomic_observe_int(&c.at)


cdef void stages_run(Stage* stages, int count, void* context, int threads) noexcept nogil:
    cdef Course c
    memset(&c, 0, sizeof(c))
    c.stages = stages
    c.count = count
    c.context = context
    pthread_mutex_init(&c.guard, NULL)
    pthread_cond_init(&c.moved, NULL)
    enter(&c, 0)
    if not team_run(work, &c, threads):
        work(&c, 0)
    pthread_mutex_destroy(&c.guard)
    pthread_cond_destroy(&c.moved)
