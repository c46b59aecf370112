# A change of an answer, as a Python value that is cheap to make.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fastevm.simulate.batch.results cimport BundleResult, Results
from fastevm.simulate.watch.question cimport Answer


cdef enum Difference:
    NEW = 1
    STATUS = 2
    OUTPUT = 4
    GAS = 8
    LOGS = 16
    BALANCES = 32
    ERROR = 64


cdef class Change:
    cdef readonly uint64_t id
    cdef readonly object base
    cdef readonly bint stale
    cdef readonly uint64_t skipped
    cdef readonly int64_t priority
    cdef uint32_t marks       # Difference
    cdef Answer* packed       # a reference; NULL: `results`, or no answer
    cdef Results results
    cdef object error
    cdef object view


# How two answers differ, as Difference marks.
cdef uint32_t differences(const Answer* before, const Answer* after) noexcept nogil
cdef Change change_of(
    uint64_t id, int64_t priority, object base, bint stale, uint32_t marks, Answer* packed,
    Results results, object error, object view
)
cdef BundleResult result_of(Results results)
cdef uint32_t marks_of_outcomes(tuple before, tuple after)
