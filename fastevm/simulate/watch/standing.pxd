# All questions of a watch by position, and those that wait to run.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.simulate.watch.question cimport Question


cdef struct Standing:
    Question** items          # NULL: the position is free
    uint32_t count            # positions in use, free ones included
    uint32_t capacity
    uint32_t* free            # free positions
    uint32_t free_count
    uint32_t free_capacity
    uint32_t* waiting         # positions of questions that run next; some may be free again
    uint32_t waiting_count
    uint32_t waiting_capacity
    uint64_t sequence         # of the current base
    uint64_t bytes            # of questions, programs, reads and answers


cdef void standing_close(Standing* s) noexcept nogil
# Returns the position of a new question, which waits; NO_POSITION if out of memory.
cdef uint32_t standing_add(Standing* s, Question* q) noexcept nogil
# Frees a question and its position.
cdef void standing_remove(Standing* s, uint32_t position) noexcept nogil
# Queues a question to run next. Its answer, if it has one, was last valid at the base before the
# current one. False if out of memory.
cdef bint standing_wait(Standing* s, uint32_t position) noexcept nogil
# The same for a question that waited already, and was not run.
cdef bint standing_wait_again(Standing* s, uint32_t position) noexcept nogil
cdef void question_free(Question* q) noexcept nogil


cdef enum:
    NO_POSITION = 0xffffffff
