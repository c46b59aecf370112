# Computes the length of data after FastLZ compression (level 1), without storing the result.
from libc.stdint cimport uint8_t, uint64_t


cdef uint64_t fastlz_length(const uint8_t* data, size_t size) noexcept nogil
