"""The questions of a watch, and the list of those that wait to run."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint32_t
from libc.string cimport memset

from fastevm.core.primitives.intrinsics cimport atomic_decrement
from fastevm.simulate.watch.program cimport program_free
from fastevm.simulate.watch.question cimport Question


cdef enum:
    FIRST_ITEMS = 64


cdef bint grow(void** items, uint32_t* capacity, uint32_t count, size_t size) noexcept nogil:
    cdef uint32_t larger = capacity[0] + capacity[0] // 2 + FIRST_ITEMS
    cdef void* moved
    if count < capacity[0]:
        return True
    moved = PyMem_RawRealloc(items[0], <size_t>larger * size)
    if moved == NULL:
        return False
    items[0] = moved
    capacity[0] = larger
    return True


cdef void question_free(Question* q) noexcept nogil:
    if q == NULL:
        return
    program_free(q.program)
    PyMem_RawFree(q.reads)
    if q.answer != NULL and atomic_decrement(&q.answer.references) == 0:
        PyMem_RawFree(q.answer)
    PyMem_RawFree(q)


cdef void question_list_close(QuestionList* s) noexcept nogil:
    cdef uint32_t i
    for i in range(s.count):
        question_free(s.items[i])
    PyMem_RawFree(s.items)
    PyMem_RawFree(s.free)
    PyMem_RawFree(s.waiting)
    memset(s, 0, sizeof(QuestionList))


cdef uint32_t question_list_add(QuestionList* s, Question* q) noexcept nogil:
    cdef uint32_t position
    if not grow(<void**>&s.waiting, &s.waiting_capacity, s.waiting_count, sizeof(uint32_t)):
        return NO_POSITION
    if s.free_count:
        s.free_count -= 1
        position = s.free[s.free_count]
    else:
        if not grow(<void**>&s.items, &s.capacity, s.count, sizeof(Question*)):
            return NO_POSITION
        position = s.count
        s.count += 1
    s.items[position] = q
    q.waits = True
    q.since = s.sequence
    q.position = position
    s.waiting[s.waiting_count] = position
    s.waiting_count += 1
    return position


cdef void question_list_remove(QuestionList* s, uint32_t position) noexcept nogil:
    question_free(s.items[position])
    s.items[position] = NULL
    # If memory is exhausted, the position stays unused until the watch is closed.
    if grow(<void**>&s.free, &s.free_capacity, s.free_count, sizeof(uint32_t)):
        s.free[s.free_count] = position
        s.free_count += 1


cdef bint question_list_wait_again(QuestionList* s, uint32_t position) noexcept nogil:
    if not grow(<void**>&s.waiting, &s.waiting_capacity, s.waiting_count, sizeof(uint32_t)):
        return False
    s.waiting[s.waiting_count] = position
    s.waiting_count += 1
    return True


cdef bint question_list_wait(QuestionList* s, uint32_t position) noexcept nogil:
    cdef Question* q = s.items[position]
    if q == NULL or q.waits:
        return True
    if not question_list_wait_again(s, position):
        return False
    q.waits = True
    q.since = s.sequence
    if q.sequence != 0:
        q.sequence = s.sequence - 1
    return True
