# Consecutive bundles as one plan of C values: what simulate_many runs without the GIL.

from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.simulation.plan cimport List, Plan, PlannedBlock
from fastevm.core.spec.schedule cimport ForkSchedule


cdef enum Route:
    RUN_HERE = 0          # one block of calls on the common state
    RUN_AS_CHAIN = 1      # several blocks, or a block unlike the next: the chain's executor does it
    REFUSED = 2           # it cannot be read; `Bundles.faults` says why


cdef struct Bundle:
    Route route
    bint validation
    bint trace_transfers
    bint has_context      # `context` is its own, else the common one counts
    size_t context
    size_t block          # of the plan; meaningless unless it runs here


cdef class Bundles:
    """The plan of consecutive bundles; emptied and filled again."""
    cdef Plan plan
    cdef List items               # Bundle
    cdef List contexts            # BlockContext
    cdef dict faults              # position of a bundle -> the exception that refuses it
    cdef object base              # the view that the bundles stand on, under their block's rules
    cdef object draft             # the header of the block that the bundles are
    cdef bytes ancestors          # concatenated; the contexts point into it
    cdef ForkSchedule schedule
    cdef BlockContext common      # the block that the bundles are, unless they override it

    cdef int clear(self) except -1
    cdef int add(self, object payload) except -1
    cdef int read(self, Bundle* bundle, object payload) except -1
    cdef int read_members(self, Bundle* bundle, dict payload) except -1
    cdef int read_block(self, Bundle* bundle, object entry) except -1
    cdef int read_calls(self, PlannedBlock* block, object calls) except -1
    cdef int read_overrides(self, Bundle* bundle, object overrides) except -1
    cdef int read_context(self, Bundle* bundle, object overrides) except -1


cdef Bundle* bundle_at(Bundles bundles, size_t index) noexcept nogil
