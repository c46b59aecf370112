# Decides when the simulation that runs on a thread must stop.


cdef class Deadline:
    cdef int request             # a `CancelRequest`: `Machine.cancel` points here
    cdef double time             # seconds of the monotonic clock; infinity: no limit
    cdef unsigned long thread    # id of the thread that last set the time
    cdef readonly bint is_brief
    cdef readonly bint is_cancelled
    cdef object listener         # object whose `cancel` is also called, or None

    cdef int stop(self) except -1
    cdef void clear(self) noexcept


# The context manager that `time_limit` returns.
cdef class TimeLimit:
    cdef object runner
    cdef double seconds
    cdef Deadline deadline
    cdef double time_before
    cdef object listener_before


# Whether the calling thread has a deadline.
cdef bint has_deadline() noexcept
# Sets the deadline of the calling thread (may be None) and returns the previous deadline.
cdef Deadline exchange(Deadline deadline)
