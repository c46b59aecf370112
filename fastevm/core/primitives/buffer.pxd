# A growable byte buffer with one owner.
from libc.stdint cimport uint8_t


cdef struct Buffer:
    uint8_t* bytes
    size_t size
    size_t capacity


# Ensures a total capacity of `capacity` bytes; `size` does not change. False if out of memory.
cdef bint buffer_reserve(Buffer* buffer, size_t capacity) noexcept nogil
cdef bint buffer_append(Buffer* buffer, const void* data, size_t size) noexcept nogil
cdef void buffer_free(Buffer* buffer) noexcept nogil
