# The compiled core of a watch: its questions, the jobs that run them, and what the runs gave.
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fastevm.simulate.watch.change cimport Change
from fastevm.simulate.watch.lane cimport Lane
from fastevm.simulate.watch.program cimport QuestionReader
from fastevm.simulate.watch.question cimport Question
from fastevm.simulate.watch.question_runner cimport Outcome, QuestionRunner
from fastevm.simulate.watch.standing cimport Standing


# Questions to run on one base, in order. Workers take one after the other.
cdef class Job:
    cdef Outcome* outcomes
    cdef const Question** questions
    cdef size_t count
    cdef int64_t taken              # atomic
    cdef int64_t limit              # nanoseconds of the monotonic clock; 0: none
    cdef readonly list chains       # (position, id) of those that run with the GIL


cdef class Worker:
    cdef QuestionRunner own
    cdef QuestionRunner next

    cdef void work(self, Job job) noexcept nogil


cdef class Engine:
    cdef Standing standing
    cdef readonly Lane own
    cdef readonly Lane next
    cdef QuestionReader reader
    cdef readonly dict positions    # id -> position
    cdef list payloads              # position -> the question as it was given, pickled
    cdef dict kept                  # position -> objects that the program borrows from
    cdef dict faults                # position -> exceptions of calls that no transaction represents
    cdef dict errors                # position -> the exception that refused the last run
    cdef dict chains                # position -> Results of a simulated chain
    cdef dict views                 # position -> View
    cdef list graves                # positions removed while a job runs
    cdef bint busy                  # a job runs
    cdef uint64_t last_id
    cdef readonly uint64_t own_count     # questions in each place
    cdef readonly uint64_t next_count
    cdef readonly uint64_t unchanged     # runs that gave the same answer

    cdef Question* question(self, object id) except NULL
    cdef Question* question_at(self, uint32_t position) except NULL
    cdef tuple read(self, Question* q, object question, bint own)
    cdef void unwait(self, uint32_t position) noexcept
    cdef Lane lane_of(self, const Question* q)
    cdef bint register(self, Question* q, Outcome* out) noexcept nogil
    cdef void take_over(self, Outcome* out) noexcept nogil
    cdef int bury(self, uint32_t position) except -1
    cdef Change publish_one(self, Outcome* out, object base)
    cdef Change report(
        self, Question* q, uint32_t position, object base, uint32_t marks
    )
