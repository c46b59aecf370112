# The journal of an execution: previous values of changes, restored in reverse order.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code
from fastevm.core.state.records cimport Checkpoint, JournalEntry, JournalKind, World


# Returns a free entry at the end; NULL if out of memory (sets w.need).
cdef JournalEntry* journal_grow(World* w) noexcept nogil


cdef inline JournalEntry* journal_next(World* w) noexcept nogil:
    cdef JournalEntry* entry
    if likely(w.journal_size < w.journal_capacity):
        entry = &w.journal[w.journal_size]
        w.journal_size += 1
        return entry
    return journal_grow(w)


# Appends an entry with the common fields set; NULL if out of memory.
cdef JournalEntry* journal_record(
    World* w, JournalKind kind, Account* a, uint32_t stamp
) noexcept nogil
# Empties the journal and release the codes that were replaced.
cdef void journal_forget(World* w) noexcept nogil
# Sets w.need to out of memory; always returns False.
cdef bint no_memory(World* w) noexcept nogil
# Returns the list with twice the capacity; NULL if out of memory, the old list stays valid.
cdef void* list_grown(World* w, void* items, size_t* capacity, size_t item_size) noexcept nogil
cdef bint list_account(
    World* w, Account*** items, size_t* count, size_t* capacity, Account* a
) noexcept nogil
# Sets the account's code; the caller manages the references.
cdef void put_code(Account* a, Code* code, bint owns) noexcept nogil

cdef void world_checkpoint(const World* w, Checkpoint* out) noexcept nogil
cdef void world_rollback(World* w, const Checkpoint* checkpoint) noexcept nogil
