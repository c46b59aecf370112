# One thread's runner of questions: runs a program and collects what it has read.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.interpreter.machine cimport ContextSpans, Span
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.simulation.plan cimport PlannedBlock
from fastevm.core.simulation.refusals cimport Refusal
from fastevm.core.state.account cimport Account
from fastevm.simulate.batch.bundle_runner cimport BundleRunner
from fastevm.simulate.batch.bundles cimport Bundle
from fastevm.simulate.batch.results cimport Results
from fastevm.simulate.watch.index cimport Read
from fastevm.simulate.watch.program cimport Program
from fastevm.simulate.watch.question cimport Answer, Question


cdef enum OutcomeState:
    NOT_RUN = 0
    ANSWERED = 1
    REFUSED_RUN = 2           # `refusal` says why
    NO_MEMORY = 3
    STOPPED_RUN = 4           # cancelled, or out of time
    PUBLISHED = 5             # taken over, and nothing to report


# What one run gave, owned by the job until it is published.
cdef struct Outcome:
    uint32_t question         # position
    OutcomeState state
    bint is_late              # stopped because its time was over
    Answer* answer            # NULL: equal to the last one
    # NULL: equal to those of the last run. Otherwise `read_count` reads; their fingerprint.
    Read* reads
    uint32_t read_count
    uint64_t fingerprint[2]
    uint64_t oldest_hash
    uint64_t newest_hash
    Refusal* refusal          # of REFUSED_RUN
    # Of an outcome that was taken over: whether it is the first, and how it differs from the last.
    bint is_first
    uint32_t marks            # Difference


cdef void outcome_free(Outcome* outcome) noexcept nogil


cdef class QuestionRunner(BundleRunner):
    cdef Results results
    cdef Bundle item          # the bundle and the block of the current program
    cdef PlannedBlock block
    cdef Buffer reads         # Read
    cdef uint64_t fingerprint[2]
    cdef ContextSpans spans
    cdef bint shows_base_fee

    # Run a question; what it gave is in the outcome.
    cdef void run_question(self, const Question* q, Outcome* out) noexcept nogil
    cdef void borrow(self, const Program* program) noexcept nogil
    cdef void give_back(self) noexcept nogil
    cdef bint collect(self, const Program* program) noexcept nogil
    cdef bint collect_account(self, const Program* program, const Account* a) noexcept nogil
    cdef bint collect_funds(self, const Program* program, const Account* a) noexcept nogil
    cdef bint collect_environment(self, const Program* program) noexcept nogil
    cdef bint collect_span(self, const Span* span, uint32_t least) noexcept nogil
    cdef bint note(self, const Account* a, uint32_t kind) noexcept nogil
    cdef bint note_read(self, const Read* read) noexcept nogil
    cdef Answer* copy_answer(self, const Answer* before) noexcept nogil
