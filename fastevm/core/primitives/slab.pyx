"""Slabs: chunks of equal-sized records for persistent structures, on large pages from chunk two on.

A chunk is 2 MiB at a multiple of 2 MiB, so the address of a record determines its chunk and its
reference count. Free records are linked through their counts, so a freed record is not touched.
The first chunk of each size stays on small pages, so it uses memory only for the pages in use.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.primitives.intrinsics cimport atomic_load_int, atomic_store_int


cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(
        void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil,
        void (*child)() noexcept nogil,
    )


cdef enum:
    CHUNK_SIZE = 1 << CHUNK_BITS
    NO_RECORD = -1


# At most CHUNK_HEAD bytes, before the counts.
cdef struct Chunk:
    Chunk* next               # next chunk of this size with a free record
    Chunk* previous
    int32_t first_free        # index of a freed record, or NO_RECORD
    uint32_t unused           # index from which on no record was ever allocated
    uint32_t records          # indexes below this lie inside the chunk
    uint32_t used
    uint32_t own_first        # records that overlap the chunk's own data: never allocated
    uint32_t own_end


cdef struct Slab:
    int guard
    Chunk* free_chunks
    Chunk* spare              # a chunk kept although none of its records is in use; may be NULL
    Chunk* small              # the first chunk, while it is the only one
    size_t chunks
    size_t used               # records in use


cdef Slab[SLAB_MAX_LINES + 1] slabs
cdef int refusing = 0         # new chunks fail, in tests


cdef inline Chunk* chunk_of(uint64_t base) noexcept nogil:
    return <Chunk*>(base + counts_offset(base) - CHUNK_HEAD)


cdef inline uint64_t base_of(const void* address) noexcept nogil:
    return <uint64_t>address & ~<uint64_t>(CHUNK_SIZE - 1)


cdef inline int* count_at(Chunk* chunk, uint32_t index) noexcept nogil:
    return <int*>(<char*>chunk + CHUNK_HEAD) + index


# ----------------------------------------------------------------------------------------------
# chunks, under the lock of their slab

cdef void list_chunk(Slab* slab, Chunk* chunk) noexcept nogil:
    chunk.previous = NULL
    chunk.next = slab.free_chunks
    if chunk.next != NULL:
        chunk.next.previous = chunk
    slab.free_chunks = chunk


cdef void unlist_chunk(Slab* slab, Chunk* chunk) noexcept nogil:
    if chunk.previous != NULL:
        chunk.previous.next = chunk.next
    else:
        slab.free_chunks = chunk.next
    if chunk.next != NULL:
        chunk.next.previous = chunk.previous


cdef void choose_pages(Slab* slab, void* memory) noexcept nogil:
    """Uses large pages for a new chunk and for the first chunk, unless the new chunk is the first.
    """
    if slab.chunks == 0:
        slab.small = chunk_of(<uint64_t>memory)
        return
    want_large_pages(memory, CHUNK_SIZE, False)
    if slab.small != NULL:
        want_large_pages(<void*>base_of(slab.small), CHUNK_SIZE, True)
        slab.small = NULL


cdef Chunk* add_chunk(Slab* slab, uint32_t lines) noexcept nogil:
    """Returns an empty chunk after linking it into the slab; NULL if out of memory."""
    cdef uint32_t size = lines * SLAB_LINE
    cdef void* memory = NULL if atomic_load_int(&refusing) else map_aligned(CHUNK_SIZE)
    cdef Chunk* chunk
    cdef uint64_t offset
    if memory == NULL:
        return NULL
    choose_pages(slab, memory)
    chunk = chunk_of(<uint64_t>memory)
    offset = <uint64_t>chunk - <uint64_t>memory
    chunk.first_free = NO_RECORD
    chunk.unused = 0
    chunk.records = CHUNK_SIZE // size
    chunk.used = 0
    chunk.own_first = <uint32_t>(offset // size)
    offset += CHUNK_HEAD + chunk.records * sizeof(int)
    chunk.own_end = <uint32_t>((offset + size - 1) // size)
    slab.chunks += 1
    list_chunk(slab, chunk)
    return chunk


cdef bint is_full(const Chunk* chunk) noexcept nogil:
    return chunk.first_free == NO_RECORD and chunk.unused == chunk.records


cdef uint32_t take_record(Chunk* chunk) noexcept nogil:
    """Returns the index of a free record of a chunk that is not full."""
    cdef uint32_t index
    chunk.used += 1
    if chunk.first_free != NO_RECORD:
        index = <uint32_t>chunk.first_free
        chunk.first_free = count_at(chunk, index)[0]
        return index
    if chunk.unused == chunk.own_first:
        chunk.unused = chunk.own_end
    index = chunk.unused
    chunk.unused += 1
    return index


# ----------------------------------------------------------------------------------------------
# records

cdef void* slab_alloc(uint32_t lines) noexcept nogil:
    cdef Slab* slab = &slabs[lines]
    cdef Chunk* chunk
    cdef uint32_t index
    cdef void* record = NULL
    lock(&slab.guard)
    chunk = slab.free_chunks
    if chunk == NULL:
        chunk = add_chunk(slab, lines)
    if chunk != NULL:
        if chunk == slab.spare:
            slab.spare = NULL
        index = take_record(chunk)
        slab.used += 1
        atomic_store_int(count_at(chunk, index), 1)
        if is_full(chunk):
            unlist_chunk(slab, chunk)
        record = <void*>(base_of(chunk) + <uint64_t>index * lines * SLAB_LINE)
    unlock(&slab.guard)
    permit_memory(record, lines * SLAB_LINE)
    return record


cdef Chunk* give_record(Slab* slab, Chunk* chunk, uint32_t index) noexcept nogil:
    """Frees a record. Returns the chunk to unmap if it is now empty and a spare chunk exists."""
    if is_full(chunk):
        list_chunk(slab, chunk)
    count_at(chunk, index)[0] = chunk.first_free
    chunk.first_free = <int32_t>index
    chunk.used -= 1
    slab.used -= 1
    if chunk.used:
        return NULL
    if slab.spare == NULL:
        slab.spare = chunk
        return NULL
    if chunk == slab.small:
        slab.small = NULL
    unlist_chunk(slab, chunk)
    slab.chunks -= 1
    return chunk


cdef void slab_free(void* record, uint32_t lines) noexcept nogil:
    cdef Slab* slab = &slabs[lines]
    cdef Chunk* chunk = chunk_of(base_of(record))
    cdef uint32_t index = <uint32_t>(slab_count(record, lines) - count_at(chunk, 0))
    cdef void* emptied
    forbid_memory(record, lines * SLAB_LINE)
    lock(&slab.guard)
    emptied = give_record(slab, chunk, index)
    unlock(&slab.guard)
    if emptied != NULL:
        emptied = <void*>base_of(emptied)
        permit_memory(emptied, CHUNK_SIZE)
        unmap(emptied, CHUNK_SIZE)


cdef SlabUse slab_use() noexcept nogil:
    cdef SlabUse use
    cdef int lines
    memset(&use, 0, sizeof(use))
    use.records = 0
    use.record_bytes = 0
    use.chunk_bytes = 0
    for lines in range(SLAB_MAX_LINES + 1):
        lock(&slabs[lines].guard)
        use.records += slabs[lines].used
        use.record_bytes += slabs[lines].used * <size_t>lines * SLAB_LINE
        use.chunk_bytes += slabs[lines].chunks * CHUNK_SIZE
        unlock(&slabs[lines].guard)
    return use


def records_in_use() -> dict[str, int]:
    """Returns the number of ``records``, their size ``record_bytes``, and ``chunk_bytes`` of all
    chunks.
    """
    return slab_use()


cdef void slab_refuse(bint refuse) noexcept nogil:
    atomic_store_int(&refusing, refuse)


cdef void init_reciprocals() noexcept:
    cdef uint32_t lines
    for lines in range(1, SLAB_MAX_LINES + 1):
        SLAB_RECIPROCALS[lines] = ((<uint64_t>1 << RECIPROCAL_BITS) + lines - 1) // lines


# A forked child has only the forking thread: a lock held by another thread would stay locked.
cdef void lock_all() noexcept nogil:
    cdef int lines
    for lines in range(SLAB_MAX_LINES + 1):
        lock(&slabs[lines].guard)


cdef void unlock_all() noexcept nogil:
    cdef int lines
    for lines in range(SLAB_MAX_LINES + 1):
        unlock(&slabs[lines].guard)


init_reciprocals()
if pthread_atfork(lock_all, unlock_all, unlock_all) != 0:
    raise MemoryError
