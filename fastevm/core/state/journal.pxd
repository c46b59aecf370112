# The journal of a run: its changes with the previous values, undone in reverse order.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code
from fastevm.core.state.records cimport Checkpoint, JournalEntry, JournalKind, World


# A free entry at the end, or NULL without memory (w.need says so).
cdef JournalEntry* journal_grow(World* w) noexcept nogil


cdef inline JournalEntry* journal_next(World* w) noexcept nogil:
    cdef JournalEntry* entry
    if likely(w.journal_size < w.journal_capacity):
        entry = &w.journal[w.journal_size]
        w.journal_size += 1
        return entry
    return journal_grow(w)


# The next entry, begun; NULL without memory.
cdef JournalEntry* journal_record(
    World* w, JournalKind kind, Account* a, uint32_t stamp
) noexcept nogil
# Empty the journal and release the codes that were replaced.
cdef void journal_forget(World* w) noexcept nogil
# Set w.need; always False.
cdef bint no_memory(World* w) noexcept nogil
# The list with twice the capacity, or NULL; the old list then stays valid.
cdef void* list_grown(World* w, void* items, size_t* capacity, size_t item_size) noexcept nogil
cdef bint list_account(
    World* w, Account*** items, size_t* count, size_t* capacity, Account* a
) noexcept nogil
# Set the account's code; the caller manages the references.
cdef void put_code(Account* a, Code* code, bint owns) noexcept nogil

cdef void world_checkpoint(const World* w, Checkpoint* out) noexcept nogil
cdef void world_rollback(World* w, const Checkpoint* checkpoint) noexcept nogil
