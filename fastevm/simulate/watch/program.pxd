# A question as C values in one block of memory: what threads run again and again without the GIL.
from libc.stdint cimport uint32_t

from fastevm.core.simulation.plan cimport PlannedBlock, PlannedCall, PlannedOverride, SlotValue
from fastevm.simulate.batch.bundles cimport Bundles


# The arrays follow the structure in the same block; call data follows them.
cdef struct Program:
    size_t size               # bytes of the whole block
    size_t call_count
    size_t override_count
    size_t slot_count
    bint trace_transfers
    bint is_free              # no call offers a price
    bint pays_blobs           # a call offers a price for blobs
    PlannedCall* calls
    PlannedOverride* overrides
    SlotValue* slots


# Where a question runs.
cdef enum Place:
    OWN_BLOCK = 0             # in the block of the base, as eth_call
    NEXT_BLOCK = 1            # in the block after it, as eth_simulateV1
    AS_CHAIN = 2              # as a simulated chain on the base, with the GIL
    NOWHERE = 3               # it cannot be read


cdef class QuestionReader(Bundles):
    """Reads one question at a time. It does not look at the base, which moves."""
    cdef bint own             # the question runs in the block of the base


# Copies the bundle that the reader has read. NULL if out of memory. The program borrows the lists of
# calls (access lists, authorizations, blob hashes) from objects of the reader's plan.
cdef Program* program_of(QuestionReader reader) noexcept nogil
cdef void program_free(Program* program) noexcept nogil     # NULL is allowed
