# Memory for many small immutable records that versions share, with reference counts stored apart.
#
# A record occupies whole cache lines. The reference counts of a chunk lie together, so retaining
# many records loads few cache lines and none of the records themselves.
from libc.stdint cimport uint32_t, uint64_t


cdef extern from "fastevm/core/primitives/slab.h" nogil:
    int count_up "fe_count_up"(int* count)            # atomic; both return the new count
    int count_down "fe_count_down"(int* count)

    # A lock for a few instructions; 0 = unlocked.
    void lock "fe_lock"(int* lock)
    void unlock "fe_unlock"(int* lock)

    # `size` bytes at a multiple of `size`, a power of two; NULL if out of memory.
    void* map_aligned "fe_map_aligned"(size_t size)
    void unmap "fe_unmap"(void* memory, size_t size)
    void want_large_pages "fe_want_large_pages"(void* memory, size_t size, bint in_use)
    # For the address sanitizer; no-ops in other builds.
    void forbid_memory "fe_forbid_memory"(void* memory, size_t size)
    void permit_memory "fe_permit_memory"(void* memory, size_t size)


cdef enum:
    SLAB_LINE = 64                      # bytes; sizes are given in lines
    SLAB_MAX_LINES = 32
    CHUNK_BITS = 21                     # a chunk has the size and alignment of a large page
    CHUNK_HEAD = 64                     # bytes in front of the counts
    COUNTS_STRIDE = 16 * 1024
    RECIPROCAL_BITS = 20


cdef struct SlabUse:
    size_t records                      # number of records of all sizes
    size_t record_bytes                 # memory of these records
    size_t chunk_bytes                  # memory of all chunks, used or not


# 2^RECIPROCAL_BITS / lines, rounded up: exact for the numbers of lines in a chunk.
cdef uint64_t[SLAB_MAX_LINES + 1] SLAB_RECIPROCALS


# Returns the offset of the reference counts in a chunk. Offsets differ: all chunks have the same
# alignment, and with equal offsets their counts would compete for a few cache sets.
cdef inline uint64_t counts_offset(uint64_t chunk) noexcept nogil:
    return ((chunk >> CHUNK_BITS) & 63) * COUNTS_STRIDE + CHUNK_HEAD


# Returns the address of a record's reference count, for the atomic functions only.
cdef inline int* slab_count(const void* record, uint32_t lines) noexcept nogil:
    cdef uint64_t at = <uint64_t>record
    cdef uint64_t inside = at & ((<uint64_t>1 << CHUNK_BITS) - 1)
    cdef uint64_t index = (inside // SLAB_LINE) * SLAB_RECIPROCALS[lines] >> RECIPROCAL_BITS
    at -= inside
    return <int*>(at + counts_offset(at)) + index


# Returns a record of 1 to SLAB_MAX_LINES lines with one reference and undefined content. NULL if
# memory is exhausted. Any thread may allocate and free.
cdef void* slab_alloc(uint32_t lines) noexcept nogil
# Frees a record. Its count must be 0, or no other thread may have a pointer to the record.
cdef void slab_free(void* record, uint32_t lines) noexcept nogil
# Returns the current memory usage.
cdef SlabUse slab_use() noexcept nogil
# For tests: makes the allocation of new chunks fail.
cdef void slab_refuse(bint refuse) noexcept nogil
