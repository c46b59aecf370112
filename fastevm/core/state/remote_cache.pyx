"""The known values of a remote state, and the recorded misses.

The known values are a table of accounts, slots and block hashes that only grows. Any number of
threads read it without a lock while one thread, which holds the GIL, adds to it: an entry is
complete before its pointer is published, and a replaced table stays allocated. A read of an unknown
value is recorded as a miss, once and under a lock, until a thread takes the misses and fetches
their values.
"""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from cpython.pythread cimport (
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_release_lock,
    WAIT_LOCK,
)
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from fastevm.core.primitives.arena cimport arena_alloc, arena_free, arena_new, arena_reset
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.intrinsics cimport atomic_load, atomic_store, process_seed
from fastevm.core.primitives.table cimport hash_address, hash_word, table_is_full
from fastevm.core.primitives.word cimport Word, word_copy, word_eq
from fastevm.core.state.code cimport EMPTY_CODE_HASH, Code, code_release


cdef extern from *:
    """
    static __thread uint64_t fe_misses;
    """
    uint64_t fe_misses


cdef enum:
    FIRST_ENTRIES = 64
    ARENA_CHUNK = 256 * 1024
    MISSES_LIMIT = 1 << 20  # most misses recorded at a time; later executions record further misses


cdef uint64_t SEED = process_seed()


cdef inline uint64_t key_hash(const KnownKey* key) noexcept nogil:
    cdef uint64_t seed = SEED + <uint64_t>key.kind
    if key.kind == KNOWN_ACCOUNT:
        return hash_address(&key.address, seed)
    return hash_word(&key.key, hash_address(&key.address, seed))


cdef inline bint key_eq(const KnownKey* a, const KnownKey* b) noexcept nogil:
    return a.kind == b.kind and word_eq(&a.key, &b.key) and address_eq(&a.address, &b.address)


cdef KnownTable* table_new(size_t capacity) noexcept nogil:
    cdef KnownTable* table = <KnownTable*>PyMem_RawCalloc(
        1, sizeof(KnownTable) + (capacity - 1) * sizeof(KnownEntry*)
    )
    if table != NULL:
        table.mask = capacity - 1
    return table


cdef void table_free(KnownTable* table) noexcept nogil:
    cdef KnownTable* smaller
    while table != NULL:
        smaller = table.smaller
        PyMem_RawFree(table)
        table = smaller


cdef const KnownEntry* table_get(const KnownTable* table, const KnownKey* key) noexcept nogil:
    cdef size_t at = key_hash(key) & table.mask
    cdef const KnownEntry* entry = entry_at(table, at)
    while entry != NULL:
        if key_eq(&entry.key, key):
            return entry
        at = (at + 1) & table.mask
        entry = entry_at(table, at)
    return NULL


cdef inline const KnownEntry* entry_at(const KnownTable* table, size_t at) noexcept nogil:
    return <const KnownEntry*><size_t>atomic_load(<const int64_t*>&table.entries[at])


cdef void table_add(KnownTable* table, KnownEntry* entry) noexcept nogil:
    """Publishes an entry in a table with a free slot."""
    cdef size_t at = key_hash(&entry.key) & table.mask
    while table.entries[at] != NULL:
        at = (at + 1) & table.mask
    atomic_store(<int64_t*>&table.entries[at], <int64_t><size_t>entry)
    table.count += 1


cdef bint table_reserve(KnownTable** current) noexcept nogil:
    """Reserves space for another entry. A replaced table stays allocated for its readers."""
    cdef KnownTable* table = current[0]
    cdef KnownTable* larger
    cdef size_t i
    if not table_is_full(table.count, table.mask):
        return True
    larger = table_new(2 * (table.mask + 1))
    if larger == NULL:
        return False
    for i in range(table.mask + 1):
        if table.entries[i] != NULL:
            table_add(larger, table.entries[i])
    larger.smaller = table
    atomic_store(<int64_t*>current, <int64_t><size_t>larger)
    return True


# ----------------------------------------------------------------------------------------------
# values

cdef KnownState* known_new() noexcept:
    cdef KnownState* known = <KnownState*>PyMem_RawCalloc(1, sizeof(KnownState))
    if known == NULL:
        return NULL
    known.table = table_new(FIRST_ENTRIES)
    known.missed = table_new(FIRST_ENTRIES)
    known.arena = arena_new(ARENA_CHUNK)
    known.missed_arena = arena_new(ARENA_CHUNK)
    known.lock = PyThread_allocate_lock()
    if (
        known.table == NULL or known.missed == NULL or known.arena == NULL
        or known.missed_arena == NULL or known.lock == NULL
    ):
        known_free(known)
        return NULL
    return known


cdef void known_free(KnownState* known) noexcept:
    cdef KnownEntry* entry
    cdef size_t i
    if known == NULL:
        return
    if known.table != NULL:
        for i in range(known.table.mask + 1):
            entry = known.table.entries[i]
            if entry != NULL and entry.key.kind == KNOWN_ACCOUNT:
                code_release((<KnownAccount*>entry).code)
    table_free(known.table)
    table_free(known.missed)
    if known.arena != NULL:
        arena_free(known.arena)
    if known.missed_arena != NULL:
        arena_free(known.missed_arena)
    if known.lock != NULL:
        PyThread_free_lock(known.lock)
    PyMem_RawFree(known.waiting)
    PyMem_RawFree(known)


cdef size_t known_bytes(const KnownState* known) noexcept nogil:
    # Each table is twice as large as the one that it replaced, and replaced tables stay allocated:
    # together they are as large as the current table.
    return known.arena.bytes + 2 * (known.table.mask + 1) * sizeof(KnownEntry*)


cdef const KnownEntry* known_get(const KnownState* known, const KnownKey* key) noexcept nogil:
    return table_get(
        <const KnownTable*><size_t>atomic_load(<const int64_t*>&known.table), key
    )


cdef bint known_put(KnownState* known, const KnownKey* key, const Word* value) noexcept nogil:
    cdef KnownEntry* entry
    if table_get(known.table, key) != NULL:
        return True
    if not table_reserve(&known.table):
        return False
    entry = <KnownEntry*>arena_alloc(known.arena, sizeof(KnownEntry))
    if entry == NULL:
        return False
    entry.key = key[0]
    word_copy(&entry.value, value)
    table_add(known.table, entry)
    return True


cdef bint known_put_account(
    KnownState* known, const Address* address, const Word* balance, uint64_t nonce, Code* code,
    bint exists, bint has_storage,
) noexcept nogil:
    cdef KnownAccount* account
    cdef KnownKey key
    memset(&key, 0, sizeof(KnownKey))
    key.kind = KNOWN_ACCOUNT
    key.address = address[0]
    if table_get(known.table, &key) != NULL:
        code_release(code)
        return True
    account = NULL
    if table_reserve(&known.table):
        account = <KnownAccount*>arena_alloc(known.arena, sizeof(KnownAccount))
    if account == NULL:
        code_release(code)
        return False
    account.entry.key = key
    word_copy(&account.entry.value, balance)
    account.nonce = nonce
    account.code = code
    account.code_hash = EMPTY_CODE_HASH if code == NULL else code.hash
    account.exists = exists
    account.has_storage = has_storage
    table_add(known.table, &account.entry)
    return True


# ----------------------------------------------------------------------------------------------
# misses

cdef uint64_t misses_of_thread() noexcept nogil:
    return fe_misses


cdef void note_miss(KnownState* known, const KnownKey* key) noexcept nogil:
    cdef KnownEntry* entry
    cdef KnownEntry** larger
    cdef size_t capacity
    if known.waiting_count == known.waiting_capacity:
        capacity = 2 * known.waiting_capacity if known.waiting_capacity else FIRST_ENTRIES
        larger = <KnownEntry**>PyMem_RawRealloc(known.waiting, capacity * sizeof(KnownEntry*))
        if larger == NULL:
            return
        known.waiting = larger
        known.waiting_capacity = capacity
    if not table_reserve(&known.missed):
        return
    entry = <KnownEntry*>arena_alloc(known.missed_arena, sizeof(KnownEntry))
    if entry == NULL:
        return
    entry.key = key[0]
    table_add(known.missed, entry)
    known.waiting[known.waiting_count] = entry
    known.waiting_count += 1


cdef void known_miss(KnownState* known, const KnownKey* key) noexcept nogil:
    global fe_misses
    fe_misses += 1
    PyThread_acquire_lock(known.lock, WAIT_LOCK)
    if known.missed.count < MISSES_LIMIT and table_get(known.missed, key) == NULL:
        note_miss(known, key)
    PyThread_release_lock(known.lock)


cdef void known_take_misses(
    KnownState* known, void (*visit)(const KnownKey* key, void* context) noexcept, void* context
) noexcept:
    cdef KnownEntry** taken
    cdef size_t i, count
    with nogil:
        PyThread_acquire_lock(known.lock, WAIT_LOCK)
        taken = known.waiting
        count = known.waiting_count
        known.waiting = NULL
        known.waiting_count = known.waiting_capacity = 0
        PyThread_release_lock(known.lock)
    # The entries stay until `known_forget_misses`, which is called only after their values arrived.
    for i in range(count):
        visit(&taken[i].key, context)
    PyMem_RawFree(taken)


cdef bint known_has_misses(KnownState* known) noexcept nogil:
    cdef bint found
    PyThread_acquire_lock(known.lock, WAIT_LOCK)
    found = known.waiting_count != 0
    PyThread_release_lock(known.lock)
    return found


cdef void known_each(
    const KnownState* known, void (*visit)(const KnownEntry* entry, void* context) noexcept,
    void* context,
) noexcept:
    cdef const KnownTable* table = known.table
    cdef size_t i
    for i in range(table.mask + 1):
        if table.entries[i] != NULL:
            visit(table.entries[i], context)


cdef void known_forget_misses(KnownState* known) noexcept nogil:
    PyThread_acquire_lock(known.lock, WAIT_LOCK)
    if known.waiting_count == 0:
        table_free(known.missed.smaller)
        known.missed.smaller = NULL
        memset(&known.missed.entries[0], 0, (known.missed.mask + 1) * sizeof(KnownEntry*))
        known.missed.count = 0
        arena_reset(known.missed_arena)
    PyThread_release_lock(known.lock)
