# The base of the questions that run in one place, and the index of what they read there.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport Reader
from fastevm.simulate.watch.index cimport ReadIndex
from fastevm.simulate.watch.question cimport Question, Reads
from fastevm.simulate.watch.question_runner cimport Outcome
from fastevm.simulate.watch.standing cimport Standing


# The value of a key on a base, for a comparison without the base: of a watch that was pickled.
cdef struct KeptValue:
    Word value
    uint32_t marks


cdef struct LaneState:
    ReadIndex index
    Standing* standing
    bint failed               # out of memory while a change was noted
    uint64_t changed_keys     # keys that changed in the last comparison
    const Address* address    # of the account whose slots are compared


cdef class Lane:
    cdef LaneState state
    cdef bint is_own                # the base's own block: of eth_calls and of simulated chains
    cdef readonly Layer layer       # None: no base yet
    cdef readonly object base       # the view, with the rules and ancestors of the block that runs
    cdef readonly object block_hash
    cdef object ancestors           # bytes, parent first
    cdef BlockContext context
    cdef KeptValue* kept            # by key, in place of a base: of a watch that was pickled
    cdef Reader before              # of a comparison of values
    cdef Reader after

    # Point to another base and let those wait whose reads changed.
    cdef int compare(self, Layer layer, const BlockContext* context, object ancestors) except -1
    cdef int wait_for_all(self) except -1
    cdef int compare_environment(
        self, const BlockContext* context, object ancestors, bint is_other_block
    ) except -1
    # Take over what a run has read. False if out of memory: the question must run again.
    cdef bint register(self, uint32_t position, Outcome* out) noexcept nogil
    # The run read the same as the one before.
    cdef void keep_reads(self, const Reads* reads) noexcept nogil
    cdef void forget(self, const Reads* reads) noexcept nogil
    cdef tuple reads_of(self, const Reads* reads)
