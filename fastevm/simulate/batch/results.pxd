# What a run of consecutive bundles gave, as C records; values are made when somebody asks.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.simulation.records cimport Records


cdef struct DeltaRecord:
    uint64_t bundle          # position among them
    Address address
    Word delta               # modulo 2**256


cdef struct BundleRecord:
    uint64_t first_call
    uint64_t call_count
    uint64_t gas_used
    bint succeeded           # every call did


cdef class Results:
    cdef Buffer bundles                 # BundleRecord
    cdef Buffer deltas                  # DeltaRecord
    cdef Records calls                  # of all bundles
    cdef readonly Py_ssize_t first      # the position of the first bundle among all
    cdef readonly Py_ssize_t count
    cdef readonly dict faults           # position among them -> the exception that refused it
    cdef readonly dict apart            # position among them -> outcomes of calls that ran apart

    cdef BundleRecord* bundle(self, size_t at) noexcept
    cdef int add_apart(self, size_t at, tuple outcomes) except -1
    cdef int add_outcome(self, object outcome) except -1
    cdef object outcome(self, size_t at)


cdef class BundleResult:
    cdef Results results
    cdef size_t at

    cdef tuple values(self)
