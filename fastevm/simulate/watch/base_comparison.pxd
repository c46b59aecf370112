# A base (a state on which questions run), and the index of the values that its questions read.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport Reader
from fastevm.simulate.watch.index cimport ReadIndex
from fastevm.simulate.watch.question cimport Question, Reads
from fastevm.simulate.watch.question_runner cimport Outcome
from fastevm.simulate.watch.question_list cimport QuestionList


# The value of a key on the last base of a pickled watch. The base itself is not pickled.
cdef struct KeptValue:
    Word value
    uint32_t marks


cdef struct BaseComparisonState:
    ReadIndex index
    QuestionList* questions
    bint failed               # memory was exhausted during a comparison
    uint64_t changed_keys     # number of keys that changed in the last comparison
    const Address* address    # the account whose slots are being compared


cdef class BaseComparison:
    cdef BaseComparisonState state
    cdef bint is_own                # questions run in the base's own block (eth_call, chains)
    cdef readonly Layer layer       # None: no base yet
    cdef readonly object base       # the view, with rules and ancestors of the questions' block
    cdef readonly object block_hash
    cdef object ancestors           # concatenated hashes, parent first
    cdef BlockContext context
    cdef KeptValue* kept            # unpickled watch: the value of each key on its last base
    cdef Reader before              # the last base, during a comparison of values
    cdef Reader after               # the new base, during a comparison of values

    # Changes the base. Questions whose reads changed wait to run.
    cdef int compare(self, Layer layer, const BlockContext* context, object ancestors) except -1
    cdef int wait_for_all(self) except -1
    cdef int compare_environment(
        self, const BlockContext* context, object ancestors, bint is_other_block
    ) except -1
    # Stores the reads of a question after it ran. Returns False if memory is exhausted: the
    # question must run again.
    cdef bint register(self, uint32_t position, Outcome* out) noexcept nogil
    # Called if a run read the same values as the question's last run. Restores the keys'
    # thresholds.
    cdef void keep_reads(self, const Reads* reads) noexcept nogil
    cdef void forget(self, const Reads* reads) noexcept nogil
    cdef tuple reads_of(self, const Reads* reads)
