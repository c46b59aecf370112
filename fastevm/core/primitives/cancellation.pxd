# Requests that a host writes to the flag that Machine.cancel points to.
from fastevm.core.primitives.intrinsics cimport atomic_load_int


cdef enum CancelRequest:
    NO_REQUEST = 0
    CANCEL_REQUEST = 1          # the execution ends with CANCELLED
    PAUSE_REQUEST = 2  # machine_run returns SUSPENDED; the host clears the request and resumes
    LOOK_REQUEST = 3  # pauses at the next call, or at a backward jump once LOOK_AFTER_GAS is used


cdef enum:
    LOOK_AFTER_GAS = 1_000_000  # gas that a message uses in at most about 20 ms


# Whether the execution must end now. Code that runs long between two opcodes calls it regularly.
cdef inline bint is_cancelled(const int* request) noexcept nogil:
    return atomic_load_int(request) == CANCEL_REQUEST
