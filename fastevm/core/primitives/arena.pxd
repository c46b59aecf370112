# Bump allocation for the data of one execution, freed as a whole.
from libc.stdint cimport uint8_t


cdef struct ArenaChunk


cdef struct Arena:
    uint8_t* cursor           # next free byte of the current chunk, 16-aligned
    uint8_t* end
    ArenaChunk* first         # chunks of the common size, in order of use
    ArenaChunk* current
    ArenaChunk* large         # allocations larger than a chunk, one chunk each
    size_t chunk_size
    size_t bytes              # memory of all chunks, including headers


# Returns NULL if memory is exhausted. `chunk_size` is rounded up to at least 1 KiB.
cdef Arena* arena_new(size_t chunk_size) noexcept nogil
cdef void* arena_alloc_slow(Arena* arena, size_t size) noexcept nogil
# Releases every allocation; keeps the first chunks (at most ARENA_KEPT_BYTES, at least one) for the
# next execution.
cdef void arena_reset(Arena* arena) noexcept nogil
cdef void arena_free(Arena* arena) noexcept nogil             # NULL is allowed


# Returns `size` uninitialised bytes, aligned to 16. NULL if memory is exhausted.
cdef inline void* arena_alloc(Arena* arena, size_t size) noexcept nogil:
    cdef uint8_t* p = arena.cursor
    if size <= <size_t>(arena.end - p):
        # Chunks end on a multiple of 16, so rounding up never passes the end.
        arena.cursor = p + ((size + 15) & ~<size_t>15)
        return p
    return arena_alloc_slow(arena, size)
