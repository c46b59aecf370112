# The results of consecutive bundles as C records. Python values are created on access.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.simulation.records cimport Records


cdef struct DeltaRecord:
    uint64_t bundle          # index of the bundle in `Results.bundles`
    Address address
    Word delta               # modulo 2**256


cdef struct BundleRecord:
    uint64_t first_call
    uint64_t call_count
    uint64_t gas_used
    bint succeeded           # every call succeeded


cdef class Results:
    cdef Buffer bundles                 # BundleRecord
    cdef Buffer deltas                  # DeltaRecord
    cdef Records calls                  # the calls of all bundles
    cdef readonly Py_ssize_t first      # position of the first bundle among all payloads
    cdef readonly Py_ssize_t count
    cdef readonly dict faults           # index of a bundle -> the exception that refused it
    cdef readonly dict apart            # index of a bundle -> outcomes, if it ran on its own

    cdef BundleRecord* bundle(self, size_t at) noexcept
    cdef int add_apart(self, size_t at, tuple outcomes) except -1
    cdef int add_outcome(self, object outcome) except -1
    cdef object outcome(self, size_t at)


cdef class BundleResult:
    cdef Results results
    cdef size_t at

    cdef tuple values(self)
