# Consecutive bundles as one plan of C values, which simulate_many runs without the GIL.

from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.simulation.plan cimport List, Plan, PlannedBlock
from fastevm.core.spec.schedule cimport ForkSchedule


cdef enum Route:
    RUN_HERE = 0          # one block of calls: a BundleRunner runs it without the GIL
    RUN_AS_CHAIN = 1      # several blocks or unusual overrides: ChainExecutor runs it with the GIL
    REFUSED = 2           # an invalid bundle: `Bundles.faults` has the exception


cdef struct Bundle:
    Route route
    bint validation
    bint trace_transfers
    bint has_context      # the bundle overrides block values; else `Bundles.common` applies
    size_t context        # index into `Bundles.contexts`
    size_t block          # index of the plan's block, for RUN_HERE


cdef class Bundles:
    """The plan of consecutive bundles. It is reused for the next bundles."""
    cdef Plan plan
    cdef List items               # Bundle
    cdef List contexts            # BlockContext
    cdef dict faults              # position of a bundle -> the exception that refuses it
    cdef object base              # the state on which the bundles run, with their block's rules
    cdef object draft             # the header of the bundles' block
    cdef bytes ancestors          # concatenated hashes; the contexts point into it
    cdef ForkSchedule schedule
    cdef BlockContext common      # context of the bundles' block, for bundles without overrides

    cdef int clear(self) except -1
    cdef int add(self, object payload) except -1
    cdef int read(self, Bundle* bundle, object payload) except -1
    cdef int read_members(self, Bundle* bundle, dict payload) except -1
    cdef int read_block(self, Bundle* bundle, object entry) except -1
    cdef int read_calls(self, PlannedBlock* block, object calls) except -1
    cdef int read_overrides(self, Bundle* bundle, object overrides) except -1
    cdef int read_context(self, Bundle* bundle, object overrides) except -1


cdef Bundle* bundle_at(Bundles bundles, size_t index) noexcept nogil
