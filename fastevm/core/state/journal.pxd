# The journal of an execution: the previous value of each change. A rollback restores them in
# reverse order.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code
from fastevm.core.state.records cimport Checkpoint, JournalEntry, JournalKind, World


# Returns a new entry at the end of a full journal. If memory is exhausted, sets w.need and returns
# NULL.
cdef JournalEntry* journal_grow(World* w) noexcept nogil


cdef inline JournalEntry* journal_next(World* w) noexcept nogil:
    cdef JournalEntry* entry
    if likely(w.journal_size < w.journal_capacity):
        entry = &w.journal[w.journal_size]
        w.journal_size += 1
        return entry
    return journal_grow(w)


# Appends an entry with these fields set. Returns NULL if memory is exhausted.
cdef JournalEntry* journal_record(
    World* w, JournalKind kind, Account* a, uint32_t stamp
) noexcept nogil
# Empties the journal and releases the codes that were replaced.
cdef void journal_forget(World* w) noexcept nogil
# Sets w.need to WORLD_OUT_OF_MEMORY. Always returns False.
cdef bint no_memory(World* w) noexcept nogil
# Returns the list with twice the capacity. NULL if memory is exhausted; the old list stays valid
# then.
cdef void* list_grown(World* w, void* items, size_t* capacity, size_t item_size) noexcept nogil
cdef bint list_account(
    World* w, Account*** items, size_t* count, size_t* capacity, Account* a
) noexcept nogil
# Sets the account's code; the caller manages the references.
cdef void put_code(Account* a, Code* code, bint owns) noexcept nogil

cdef void world_checkpoint(const World* w, Checkpoint* out) noexcept nogil
cdef void world_rollback(World* w, const Checkpoint* checkpoint) noexcept nogil
