"""A growable byte buffer with one owner."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport SIZE_MAX
from libc.string cimport memcpy


cdef enum:
    SMALLEST = 64             # size of the first allocation


cdef bint buffer_reserve(Buffer* buffer, size_t capacity) noexcept nogil:
    cdef size_t wanted
    cdef void* grown
    if capacity <= buffer.capacity:
        return True
    wanted = SMALLEST
    if buffer.capacity <= SIZE_MAX // 4 and wanted < 2 * buffer.capacity:
        wanted = 2 * buffer.capacity
    if wanted < capacity:
        wanted = capacity
    grown = PyMem_RawRealloc(buffer.bytes, wanted)
    if grown == NULL:
        return False
    buffer.bytes = <uint8_t*>grown
    buffer.capacity = wanted
    return True


cdef bint buffer_append(Buffer* buffer, const void* data, size_t size) noexcept nogil:
    if size > buffer.capacity - buffer.size:
        if size > SIZE_MAX - buffer.size or not buffer_reserve(buffer, buffer.size + size):
            return False
    if size != 0:
        memcpy(buffer.bytes + buffer.size, data, size)
        buffer.size += size
    return True


cdef void buffer_free(Buffer* buffer) noexcept nogil:
    PyMem_RawFree(buffer.bytes)
    buffer.bytes = NULL
    buffer.size = 0
    buffer.capacity = 0
