# A small team of threads that wait for work without the GIL. It is closed until somebody asks for
# it, and stays for the process then; a child process begins with a closed one.


cdef enum:
    TEAM_LIMIT = 64           # members, the caller included


# What each member runs, with its number from 0 (the caller's) on.
ctypedef void (*TeamWork)(void* context, int member) noexcept nogil

# Run the work on at most so many threads and wait until it has ended on all that came before the
# caller's own share ended: the shares must not need a certain member. False: the team is at work
# for another caller, or no thread could be started; nothing has run then.
cdef bint team_run(TeamWork work, void* context, int members) noexcept nogil
