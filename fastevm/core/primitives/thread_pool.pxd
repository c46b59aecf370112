# A small pool of threads that wait for work without the GIL. The first use starts it, and it stays
# for the life of the process; a forked child starts without threads.


cdef enum:
    TEAM_LIMIT = 64           # threads, including the caller


# The function that each thread runs, with its number; the caller is 0.
ctypedef void (*TeamWork)(void* context, int member) noexcept nogil

# Runs the work on at most this many threads, and waits until every thread that joined before the
# caller's own share ended has ended too. So the work must not depend on a certain thread joining.
# Returns False if the pool is busy with another caller or no thread could be started; then nothing
# has run.
cdef bint team_run(TeamWork work, void* context, int members) noexcept nogil
