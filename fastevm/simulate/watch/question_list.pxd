# All questions of a watch by position, and the list of those that wait to run.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.simulate.watch.question cimport Question


cdef struct QuestionList:
    Question** items          # NULL: the position is free
    uint32_t count            # positions in the array, including free positions
    uint32_t capacity
    uint32_t* free            # free positions
    uint32_t free_count
    uint32_t free_capacity
    uint32_t* waiting         # positions of waiting questions; some may be free by now
    uint32_t waiting_count
    uint32_t waiting_capacity
    uint64_t sequence         # number of the current base
    uint64_t bytes            # memory of questions, programs, reads and answers


cdef void question_list_close(QuestionList* s) noexcept nogil
# Adds a question, which waits to run. Returns its position; NO_POSITION if memory is exhausted.
cdef uint32_t question_list_add(QuestionList* s, Question* q) noexcept nogil
# Frees a question and its position.
cdef void question_list_remove(QuestionList* s, uint32_t position) noexcept nogil
# Adds a question to the waiting list. Its answer, if any, was last valid on the previous base.
# Returns False if memory is exhausted.
cdef bint question_list_wait(QuestionList* s, uint32_t position) noexcept nogil
# Adds a question to the waiting list again that was in a job and did not run.
cdef bint question_list_wait_again(QuestionList* s, uint32_t position) noexcept nogil
cdef void question_free(Question* q) noexcept nogil


cdef enum:
    NO_POSITION = 0xffffffff
