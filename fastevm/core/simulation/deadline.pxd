# When the run under way in a thread must stop.


cdef class Deadline:
    cdef int request             # a `CancelRequest`: `Machine.cancel` points here
    cdef double time             # seconds of the monotonic clock; infinity: no limit
    cdef unsigned long thread    # that last gave it a time
    cdef readonly bint is_brief
    cdef readonly bint is_cancelled
    cdef object listener         # whose `cancel` is called too; None: nobody

    cdef int stop(self) except -1
    cdef void clear(self) noexcept


# The context of `time_limit`.
cdef class TimeLimit:
    cdef object runner
    cdef double seconds
    cdef Deadline deadline
    cdef double time_before
    cdef object listener_before


# Whether the calling thread has a deadline.
cdef bint has_deadline() noexcept
# Make a deadline (or None) that of this thread; the one before it.
cdef Deadline exchange(Deadline deadline)
