# A question as C values in one block of memory, which threads run repeatedly without the GIL.
from libc.stdint cimport uint32_t

from fastevm.core.simulation.plan cimport PlannedBlock, PlannedCall, PlannedOverride, SlotValue
from fastevm.simulate.batch.bundles cimport Bundles


# The block has this structure, then the arrays, then the call data.
cdef struct Program:
    size_t size               # bytes of the whole block
    size_t call_count
    size_t override_count
    size_t slot_count
    bint trace_transfers
    bint is_free              # no call has a gas price
    bint pays_blobs           # a call has a blob fee cap
    PlannedCall* calls
    PlannedOverride* overrides
    SlotValue* slots


# The block in which a question runs.
cdef enum BlockChoice:
    OWN_BLOCK = 0             # in the block of the base, as in eth_call
    NEXT_BLOCK = 1            # in the block after the base, as in eth_simulateV1
    AS_CHAIN = 2              # as a simulated chain on the base, with the GIL
    NOWHERE = 3               # an invalid question does not run


cdef class QuestionReader(Bundles):
    """Reads one question at a time. Does not use the base, which changes."""
    cdef bint own             # the question runs in the block of the base


# Returns a program with the bundle that the reader has read; NULL if memory is exhausted. The
# program borrows access lists, authorizations and blob hashes of calls from objects of the reader's
# plan.
cdef Program* program_of(QuestionReader reader) noexcept nogil
cdef void program_free(Program* program) noexcept nogil     # NULL is allowed
