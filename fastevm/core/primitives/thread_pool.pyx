"""A pool of threads for work that runs without the GIL."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.primitives.event_count cimport (
    SPINS,
    EventCount,
    event_count_open,
    events_advance,
    events_await,
    events_seen,
)
from fastevm.core.primitives.intrinsics cimport atomic_claim_int, atomic_publish_int
from fastevm.core.primitives.pthread cimport (
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
    start_thread,
)


cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(
        void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil,
        void (*child)() noexcept nogil,
    )


cdef struct Team:
    int taken                 # whether a caller uses the pool; atomic
    EventCount called
    EventCount ended
    pthread_mutex_t guard     # protects all members below
    int started               # threads besides the caller
    TeamWork work
    void* context
    uint64_t call             # number of the newest call
    int wanted                # threads besides the caller that may join; 0 once the caller is done
    int running               # threads that joined


cdef Team team


cdef bint answer(
    int member, uint64_t* answered, TeamWork* work, void** context
) noexcept nogil:
    """Joins a new call if the call needs this thread: sets ``work``. Returns whether it joined."""
    cdef bint wanted
    pthread_mutex_lock(&team.guard)
    wanted = team.call != answered[0] and team.wanted >= member
    answered[0] = team.call
    if wanted:
        team.running += 1
        work[0], context[0] = team.work, team.context
    pthread_mutex_unlock(&team.guard)
    return wanted


cdef void* member_runs(void* argument) noexcept nogil:
    """Thread function: waits for calls forever. The argument is the thread's number."""
    cdef int member = <int><size_t>argument
    cdef uint64_t answered = 0
    cdef TeamWork work = NULL
    cdef void* context = NULL
    cdef bint is_last
    cdef int seen
    while True:
        seen = events_seen(&team.called)
        if not answer(member, &answered, &work, &context):
            events_await(&team.called, seen, 0)
            continue
        work(context, member)
        pthread_mutex_lock(&team.guard)
        team.running -= 1
        is_last = team.running == 0
        pthread_mutex_unlock(&team.guard)
        if is_last:
            events_advance(&team.ended)
    return NULL


cdef bint start_members(int members) noexcept nogil:
    """Starts threads, which wait for the next call. Called with the guard held, between calls."""
    while team.started < members:
        if not start_thread(member_runs, <void*><size_t>(team.started + 1)):
            return False
        team.started += 1
    return True


cdef bint team_run(TeamWork work, void* context, int members) noexcept nogil:
    cdef bint ready
    if members < 2 or members > TEAM_LIMIT or not atomic_claim_int(&team.taken, False, True):
        return False
    pthread_mutex_lock(&team.guard)
    ready = start_members(members - 1)
    if ready:
        team.work = work
        team.context = context
        team.wanted = members - 1
        team.call += 1
    pthread_mutex_unlock(&team.guard)
    if ready:
        events_advance(&team.called)
        work(context, 0)
        wait_for_members()
    atomic_publish_int(&team.taken, False)
    return ready


cdef void wait_for_members() noexcept nogil:
    """Waits for the threads that have joined. No other thread can join from now on."""
    cdef bint all_ended = False
    cdef int seen
    while not all_ended:
        seen = events_seen(&team.ended)
        pthread_mutex_lock(&team.guard)
        team.wanted = 0
        all_ended = team.running == 0
        pthread_mutex_unlock(&team.guard)
        if not all_ended:
            events_await(&team.ended, seen, SPINS)


# Resets the pool in a forked child, which has none of the threads: a lock held by one of them would
# stay locked.
cdef void close_team() noexcept nogil:
    memset(&team, 0, sizeof(Team))
    pthread_mutex_init(&team.guard, NULL)
    event_count_open(&team.called)
    event_count_open(&team.ended)


close_team()
if pthread_atfork(NULL, NULL, close_team) != 0:
    raise MemoryError
