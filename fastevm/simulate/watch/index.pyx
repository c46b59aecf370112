"""The inverted index of a watch: maps a key to the questions that read it."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.intrinsics cimport process_seed
from fastevm.core.primitives.table cimport hash_address, hash_word
from fastevm.core.primitives.word cimport Word, word_copy, word_eq


cdef enum:
    FIRST_KEYS = 64
    FIRST_BUCKETS = 64
    FIRST_IDS = 8
    FEW_GHOSTS = 8            # most ghosts of a list that is not cleaned
    MOST_KEYS = 0x7fffffff


cdef bint index_open(ReadIndex* index) noexcept nogil:
    memset(index, 0, sizeof(ReadIndex))
    index.free = NO_KEY
    index.seed = process_seed()
    index.buckets = <uint32_t*>PyMem_RawMalloc(FIRST_BUCKETS * sizeof(uint32_t))
    if index.buckets == NULL:
        return False
    memset(index.buckets, 0xff, FIRST_BUCKETS * sizeof(uint32_t))
    index.bucket_mask = FIRST_BUCKETS - 1
    return True


cdef void index_close(ReadIndex* index) noexcept nogil:
    cdef uint32_t i
    for i in range(index.key_count):
        if index.keys[i].count and index.keys[i].capacity:
            PyMem_RawFree(index.keys[i].ids.many)
    PyMem_RawFree(index.keys)
    PyMem_RawFree(index.buckets)
    memset(index, 0, sizeof(ReadIndex))


cdef uint64_t index_bytes(const ReadIndex* index) noexcept nogil:
    return (
        <uint64_t>index.key_capacity * sizeof(Key)
        + (<uint64_t>index.bucket_mask + 1) * sizeof(uint32_t) + index.list_bytes
    )


# ----------------------------------------------------------------------------------------------
# keys

cdef inline bint has_word(uint32_t kind) noexcept nogil:
    """Whether the word is part of the key."""
    return kind == READ_SLOT or kind == READ_ENVIRONMENT


cdef inline uint32_t bucket_of(
    const ReadIndex* index, uint32_t kind, const Address* address, const Word* word
) noexcept nogil:
    cdef uint64_t hash = hash_address(address, index.seed + kind)
    if has_word(kind):
        hash = hash_word(word, hash)
    return <uint32_t>hash & index.bucket_mask


cdef uint32_t index_find(
    const ReadIndex* index, uint32_t kind, const Address* address, const Word* word
) noexcept nogil:
    cdef uint32_t at = index.buckets[bucket_of(index, kind, address, word)]
    cdef const Key* key
    while at != NO_KEY:
        key = &index.keys[at]
        if key.kind == kind and address_eq(&key.address, address):
            if not has_word(kind) or word_eq(&key.word, word):
                return at
        at = key.next
    return NO_KEY


cdef bint grow_buckets(ReadIndex* index) noexcept nogil:
    cdef uint32_t mask = (index.bucket_mask + 1) * 2 - 1
    cdef size_t size = (<size_t>mask + 1) * sizeof(uint32_t)
    cdef uint32_t* larger = <uint32_t*>PyMem_RawMalloc(size)
    cdef Key* key
    cdef uint32_t i, at
    if larger == NULL:
        return False
    memset(larger, 0xff, size)
    PyMem_RawFree(index.buckets)
    index.buckets = larger
    index.bucket_mask = mask
    for i in range(index.key_count):
        key = &index.keys[i]
        if key.count:
            at = bucket_of(index, key.kind, &key.address, &key.word)
            key.next = larger[at]
            larger[at] = i
    return True


cdef uint32_t take_key(ReadIndex* index) noexcept nogil:
    """Returns the position of an unused key; NO_KEY if memory is exhausted."""
    cdef uint32_t at = index.free
    cdef uint32_t capacity
    cdef Key* moved
    if at != NO_KEY:
        index.free = index.keys[at].next
        return at
    if index.key_count == index.key_capacity:
        if index.key_capacity >= MOST_KEYS:
            return NO_KEY
        capacity = index.key_capacity + index.key_capacity // 2 + FIRST_KEYS
        moved = <Key*>PyMem_RawRealloc(index.keys, <size_t>capacity * sizeof(Key))
        if moved == NULL:
            return NO_KEY
        index.keys = moved
        index.key_capacity = capacity
    index.key_count += 1
    return index.key_count - 1


cdef uint32_t index_key(ReadIndex* index, const Read* read) noexcept nogil:
    cdef uint32_t at = index_find(index, read.kind, &read.address, &read.word)
    cdef uint32_t bucket
    cdef Key* key
    if at != NO_KEY:
        return at
    if index.live > index.bucket_mask and not grow_buckets(index):
        return NO_KEY
    at = take_key(index)
    if at == NO_KEY:
        return NO_KEY
    key = &index.keys[at]
    memset(key, 0, sizeof(Key))
    key.address = read.address
    key.kind = read.kind
    if has_word(read.kind):
        word_copy(&key.word, &read.word)
    bucket = bucket_of(index, read.kind, &read.address, &read.word)
    key.next = index.buckets[bucket]
    index.buckets[bucket] = at
    index.live += 1
    return at


cdef void free_key(ReadIndex* index, uint32_t at) noexcept nogil:
    """Removes a key without questions from the table."""
    cdef Key* key = &index.keys[at]
    cdef uint32_t* link = &index.buckets[bucket_of(index, key.kind, &key.address, &key.word)]
    while link[0] != at:
        link = &index.keys[link[0]].next
    link[0] = key.next
    if key.capacity:
        index.list_bytes -= <uint64_t>key.capacity * sizeof(uint32_t)
        PyMem_RawFree(key.ids.many)
    index.posted -= key.count
    key.count = key.ghosts = key.capacity = 0
    key.next = index.free
    index.free = at
    index.live -= 1


# ----------------------------------------------------------------------------------------------
# the questions of a key

cdef bint grow_ids(ReadIndex* index, Key* key) noexcept nogil:
    cdef uint32_t capacity = key.capacity + key.capacity // 2 if key.capacity else FIRST_IDS
    cdef uint32_t* ids
    if key.capacity:
        ids = <uint32_t*>PyMem_RawRealloc(key.ids.many, <size_t>capacity * sizeof(uint32_t))
        if ids == NULL:
            return False
    else:
        ids = <uint32_t*>PyMem_RawMalloc(<size_t>capacity * sizeof(uint32_t))
        if ids == NULL:
            return False
        memcpy(ids, key.ids.few, key.count * sizeof(uint32_t))
    index.list_bytes += <uint64_t>(capacity - key.capacity) * sizeof(uint32_t)
    key.ids.many = ids
    key.capacity = capacity
    return True


cdef bint index_add(ReadIndex* index, uint32_t at, uint32_t question) noexcept nogil:
    cdef Key* key = &index.keys[at]
    if key.count == (key.capacity if key.capacity else <uint32_t>INLINE_IDS):
        if not grow_ids(index, key):
            if key.count == 0:
                free_key(index, at)
            return False
    (<uint32_t*>key_questions(key))[key.count] = question
    key.count += 1
    index.posted += 1
    return True


cdef int by_number(const void* a, const void* b) noexcept nogil:
    cdef uint32_t x = (<const uint32_t*>a)[0], y = (<const uint32_t*>b)[0]
    return (x > y) - (x < y)


cdef void clean(ReadIndex* index, uint32_t at) noexcept nogil:
    """Removes ghosts and duplicates: a question that stopped reading the key and reads it again."""
    cdef Key* key = &index.keys[at]
    cdef uint32_t* ids = <uint32_t*>key_questions(key)
    cdef uint32_t i, kept = 0
    for i in range(key.count):
        if index.reads(index.context, ids[i], at):
            ids[kept] = ids[i]
            kept += 1
    qsort(ids, kept, sizeof(uint32_t), by_number)
    index.posted -= key.count
    key.count = 0
    for i in range(kept):
        if key.count == 0 or ids[key.count - 1] != ids[i]:
            ids[key.count] = ids[i]
            key.count += 1
    index.posted += key.count
    key.ghosts = 0


cdef void index_remove(ReadIndex* index, uint32_t at) noexcept nogil:
    cdef Key* key = &index.keys[at]
    key.ghosts += 1
    if key.ghosts >= key.count or (
        key.ghosts > FEW_GHOSTS and key.ghosts > key.count // 2
    ):
        clean(index, at)
        if key.count == 0:
            free_key(index, at)
