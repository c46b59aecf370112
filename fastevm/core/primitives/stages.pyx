"""Runs work in stages: a thread that finds no untaken item waits until the stage ends."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from fastevm.core.primitives.event_count cimport (
    SPINS,
    EventCount,
    event_count_close,
    event_count_open,
    events_advance,
    events_await,
    events_seen,
)
from fastevm.core.primitives.intrinsics cimport (
    atomic_decrement,
    atomic_increment,
    atomic_observe_int,
    atomic_publish_int,
)
from fastevm.core.primitives.thread_pool cimport team_run


cdef struct Course:
    Stage* stages
    int count
    void* context
    int at                    # index of the current stage: atomic
    EventCount moved          # counts changes of the stage


cdef void enter(Course* c, int at) noexcept nogil:
    """Starts a stage, or the first following stage that has items."""
    while at < c.count and c.stages[at].count == 0:
        if c.stages[at].end != NULL:
            c.stages[at].end(c.context)
        at += 1
    if at < c.count:
        c.stages[at].left = c.stages[at].count
    atomic_publish_int(&c.at, at)
    events_advance(&c.moved)


cdef void leave(Course* c, int at) noexcept nogil:
    """Ends a stage whose items have all ended, and starts the next stage."""
    if c.stages[at].end != NULL:
        c.stages[at].end(c.context)
    enter(c, at + 1)


cdef void wait_for_the_end(Course* c, int at) noexcept nogil:
    cdef int seen = events_seen(&c.moved)
    while atomic_observe_int(&c.at) == at:
        events_await(&c.moved, seen, SPINS)
        seen = events_seen(&c.moved)


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
    event_count_open(&c.moved)
    enter(&c, 0)
    if not team_run(work, &c, threads):
        work(&c, 0)
    event_count_close(&c.moved)
