# A change of an answer as a Python value. Creating it is cheap: it refers to the packed answer.
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
    cdef uint32_t marks       # bits of Difference
    cdef Answer* packed       # a counted reference; NULL: see `results`
    cdef Results results
    cdef object error
    cdef object view


# Returns how two answers differ, as bits of Difference.
cdef uint32_t differences(const Answer* before, const Answer* after) noexcept nogil
cdef Change change_of(
    uint64_t id, int64_t priority, object base, bint stale, uint32_t marks, Answer* packed,
    Results results, object error, object view
)
cdef BundleResult result_of(Results results)
cdef uint32_t marks_of_outcomes(tuple before, tuple after)
