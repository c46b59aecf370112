"""Bump allocation in chunks for the data of one execution, freed as a whole."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport SIZE_MAX, uint64_t


cdef enum:
    ARENA_KEPT_BYTES = 1 << 20    # most bytes that a reset keeps
    SMALLEST_CHUNK = 1 << 10


cdef struct ArenaChunk:
    ArenaChunk* next
    size_t size                   # bytes after this header
    uint64_t padding[2]           # keeps the data after the header aligned to 16


cdef ArenaChunk* new_chunk(Arena* arena, size_t size) noexcept nogil:
    cdef ArenaChunk* chunk
    if size > SIZE_MAX - sizeof(ArenaChunk):
        return NULL
    chunk = <ArenaChunk*>PyMem_RawMalloc(sizeof(ArenaChunk) + size)
    if chunk != NULL:
        chunk.next = NULL
        chunk.size = size
        arena.bytes += sizeof(ArenaChunk) + size
    return chunk


# Frees this chunk and all chunks after it.
cdef void free_chunks(Arena* arena, ArenaChunk* chunk) noexcept nogil:
    cdef ArenaChunk* next_chunk
    while chunk != NULL:
        next_chunk = chunk.next
        arena.bytes -= sizeof(ArenaChunk) + chunk.size
        PyMem_RawFree(chunk)
        chunk = next_chunk


cdef void enter_chunk(Arena* arena, ArenaChunk* chunk) noexcept nogil:
    arena.current = chunk
    arena.cursor = <uint8_t*>&chunk[1]
    arena.end = arena.cursor + chunk.size


cdef Arena* arena_new(size_t chunk_size) noexcept nogil:
    cdef Arena* arena = <Arena*>PyMem_RawMalloc(sizeof(Arena))
    if arena == NULL:
        return NULL
    if chunk_size > SIZE_MAX // 4:
        chunk_size = SIZE_MAX // 4
    if chunk_size < SMALLEST_CHUNK:
        chunk_size = SMALLEST_CHUNK
    arena.chunk_size = (chunk_size + 15) & ~<size_t>15
    arena.bytes = 0
    arena.large = NULL
    arena.first = new_chunk(arena, arena.chunk_size)
    if arena.first == NULL:
        PyMem_RawFree(arena)
        return NULL
    enter_chunk(arena, arena.first)
    return arena


# Allocates from another chunk. An allocation larger than a quarter of a chunk gets its own chunk,
# so at most a quarter of any chunk is wasted.
cdef void* arena_alloc_slow(Arena* arena, size_t size) noexcept nogil:
    cdef ArenaChunk* chunk
    if size > arena.chunk_size // 4:
        chunk = new_chunk(arena, size)
        if chunk == NULL:
            return NULL
        chunk.next = arena.large
        arena.large = chunk
        return &chunk[1]
    chunk = arena.current.next
    if chunk == NULL:
        chunk = new_chunk(arena, arena.chunk_size)
        if chunk == NULL:
            return NULL
        arena.current.next = chunk
    enter_chunk(arena, chunk)
    return arena_alloc(arena, size)


cdef void arena_reset(Arena* arena) noexcept nogil:
    cdef ArenaChunk* chunk = arena.first
    cdef size_t kept = chunk.size
    free_chunks(arena, arena.large)
    arena.large = NULL
    while chunk.next != NULL and kept + chunk.next.size <= ARENA_KEPT_BYTES:
        chunk = chunk.next
        kept += chunk.size
    free_chunks(arena, chunk.next)
    chunk.next = NULL
    enter_chunk(arena, arena.first)


cdef void arena_free(Arena* arena) noexcept nogil:
    if arena != NULL:
        free_chunks(arena, arena.large)
        free_chunks(arena, arena.first)
        PyMem_RawFree(arena)
