# Runs the programs of questions on one thread, and collects their reads.
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
    PUBLISHED = 5             # the engine has stored the answer, and there is no change to report


# The result of one execution. The job owns it until it is published.
cdef struct Outcome:
    uint32_t question         # position of the question
    OutcomeState state
    bint is_late              # stopped by its time limit
    Answer* answer            # NULL: equal to the previous answer
    # array of `read_count` reads; NULL: the run read the same values as the previous run
    Read* reads
    uint32_t read_count
    uint64_t fingerprint[2]
    uint64_t oldest_hash
    uint64_t newest_hash
    Refusal* refusal          # the reason, for REFUSED_RUN
    # Set when the engine has stored the answer: whether it is the question's first answer, and how
    # it differs from the previous answer.
    bint is_first
    uint32_t marks            # bits of Difference


cdef void outcome_free(Outcome* outcome) noexcept nogil


cdef class QuestionRunner(BundleRunner):
    cdef Results results
    cdef Bundle item          # the bundle and the block of the current program
    cdef PlannedBlock block
    cdef Buffer reads         # Read
    cdef uint64_t fingerprint[2]
    cdef ContextSpans spans
    cdef bint shows_base_fee

    # Runs a question and fills in the outcome.
    cdef void run_question(self, const Question* q, Outcome* out) noexcept nogil
    cdef void borrow(self, const Program* program) noexcept nogil
    cdef void release_program(self) noexcept nogil
    cdef bint collect(self, const Program* program) noexcept nogil
    cdef bint collect_account(self, const Program* program, const Account* a) noexcept nogil
    cdef bint collect_funds(self, const Program* program, const Account* a) noexcept nogil
    cdef bint collect_environment(self, const Program* program) noexcept nogil
    cdef bint collect_span(self, const Span* span, uint32_t least) noexcept nogil
    cdef bint note(self, const Account* a, uint32_t kind) noexcept nogil
    cdef bint note_read(self, const Read* read) noexcept nogil
    cdef Answer* copy_answer(self, const Answer* before) noexcept nogil
