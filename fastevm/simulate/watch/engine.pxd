# The compiled core of a watch: the questions, their answers, and the jobs that run questions.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fastevm.simulate.watch.change cimport Change
from fastevm.simulate.watch.base_comparison cimport BaseComparison
from fastevm.simulate.watch.program cimport QuestionReader
from fastevm.simulate.watch.question cimport Question
from fastevm.simulate.watch.question_runner cimport Outcome, QuestionRunner
from fastevm.simulate.watch.question_list cimport QuestionList


# Questions to run on one base. Workers take the questions from a job in order.
cdef class Job:
    cdef Outcome* outcomes
    cdef const Question** questions
    cdef size_t count
    cdef int64_t taken              # number of questions that workers have claimed; atomic
    cdef int64_t limit              # end time, nanoseconds of the monotonic clock; 0: no limit
    cdef readonly list chains       # (position, id) of questions that run with the GIL


cdef class Worker:
    cdef QuestionRunner own
    cdef QuestionRunner next

    cdef void work(self, Job job) noexcept nogil


cdef class Engine:
    cdef QuestionList questions
    cdef readonly BaseComparison own
    cdef readonly BaseComparison next
    cdef QuestionReader reader
    cdef readonly dict positions    # id -> position
    cdef list payloads              # position -> the question as the user passed it, pickled
    cdef dict kept                  # position -> objects whose memory the program borrows
    cdef dict faults                # position -> exceptions of calls that no transaction represents
    cdef dict errors                # position -> the exception that refused the last run
    cdef dict chains                # position -> Results of a simulated chain
    cdef dict views                 # position -> View
    cdef list graves                # positions of questions removed while a job runs
    cdef bint busy                  # a job runs
    cdef uint64_t last_id
    cdef readonly uint64_t own_count     # questions that run in the block of the base
    cdef readonly uint64_t next_count    # questions that run in the next block
    cdef readonly uint64_t unchanged  # number of runs that gave the same answer as the run before

    cdef Question* question(self, object id) except NULL
    cdef Question* question_at(self, uint32_t position) except NULL
    cdef tuple read(self, Question* q, object question, bint own)
    cdef void unwait(self, uint32_t position) noexcept
    cdef BaseComparison comparison_of(self, const Question* q)
    cdef bint register(self, Question* q, Outcome* out) noexcept nogil
    cdef void take_over(self, Outcome* out) noexcept nogil
    cdef int bury(self, uint32_t position) except -1
    cdef Change publish_one(self, Outcome* out, object base)
    cdef Change report(
        self, Question* q, uint32_t position, object base, uint32_t marks
    )
