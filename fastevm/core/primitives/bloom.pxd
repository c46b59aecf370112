# The bloom filter of logs, M3:2048 (Yellow Paper, section 4.3.1), and scans over many of them.
from libc.stdint cimport uint8_t, uint16_t, uint32_t


cdef enum:
    BLOOM_SIZE = 256


# The three bits of one value, each as a byte index and a mask within that byte.
cdef struct BloomBits:
    uint16_t index[3]
    uint8_t mask[3]


cdef void bloom_bits(BloomBits* out, const uint8_t* data, size_t size) noexcept nogil
cdef void bloom_add(uint8_t* bloom, const uint8_t* data, size_t size) noexcept nogil
# Adds an item, given its keccak256.
cdef void bloom_add_digest(uint8_t* bloom, const uint8_t* digest) noexcept nogil
cdef void bloom_merge(uint8_t* bloom, const uint8_t* other) noexcept nogil


# A compiled filter: every position must match one of its alternatives. The alternatives of position
# i are bits[ends[i - 1]] .. bits[ends[i]] (from 0 for the first); a position that matches every log
# is omitted.
cdef struct BloomPattern:
    uint32_t position_count
    uint32_t* ends
    BloomBits* bits


cdef bint bloom_matches(const BloomPattern* pattern, const uint8_t* bloom) noexcept nogil
# Writes the indices of the possibly matching blooms among `count` blooms, `stride` bytes apart, to
# `hits` (capacity `count`). Returns how many it wrote.
cdef size_t bloom_scan(
    const BloomPattern* pattern, const uint8_t* blooms, size_t stride, size_t count, uint32_t* hits
) noexcept nogil


cdef class BloomQuery:
    """A compiled filter that owns its pattern. See bloom.pyx."""
    cdef BloomPattern pattern
