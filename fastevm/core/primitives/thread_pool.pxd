# A small pool of threads that wait for work without the GIL. The first use starts the pool, which
# stays until the process ends. A forked child starts without threads.


cdef enum:
    TEAM_LIMIT = 64           # threads, including the caller


# The function that each thread runs, with its number; the caller is 0.
ctypedef void (*TeamWork)(void* context, int member) noexcept nogil

# Runs the work on at most `members` threads. Waits for the threads that joined before the caller
# finished its own part, so the work must not depend on a certain number of threads. Returns False,
# and runs nothing, if the pool is busy with another caller or no thread could be started.
cdef bint team_run(TeamWork work, void* context, int members) noexcept nogil
