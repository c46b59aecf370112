"""The journal of an execution: records changes and reverts them."""

from cpython.mem cimport PyMem_RawRealloc
from libc.stdint cimport uint32_t

from fastevm.core.primitives.word cimport word_copy
from fastevm.core.state.account cimport DIRTY_FIELDS, Account, Slot
from fastevm.core.state.code cimport EMPTY_CODE_HASH, Code, code_release
from fastevm.core.state.records cimport (
    JOURNAL_ACCOUNT_WARM,
    JOURNAL_BALANCE,
    JOURNAL_CODE,
    JOURNAL_CREATED,
    JOURNAL_DELEGATED,
    JOURNAL_DESTROY,
    JOURNAL_EXISTS,
    JOURNAL_NONCE,
    JOURNAL_SLOT,
    JOURNAL_SLOT_WARM,
    JOURNAL_TOUCH,
    JOURNAL_TRANSIENT,
    WORLD_OUT_OF_MEMORY,
    Checkpoint,
    JournalEntry,
    JournalKind,
    TransientSlot,
    World,
)


cdef enum:
    FIRST_ENTRIES = 256           # initial capacity of the journal and the lists


cdef bint no_memory(World* w) noexcept nogil:
    w.need = WORLD_OUT_OF_MEMORY
    return False


cdef void* list_grown(World* w, void* items, size_t* capacity, size_t item_size) noexcept nogil:
    """Returns the list with twice the capacity; NULL if memory is exhausted."""
    cdef size_t larger = capacity[0] * 2 if capacity[0] else FIRST_ENTRIES
    cdef void* moved = PyMem_RawRealloc(items, larger * item_size)
    if moved == NULL:
        no_memory(w)
        return NULL
    capacity[0] = larger
    return moved


cdef JournalEntry* journal_grow(World* w) noexcept nogil:
    cdef void* moved = list_grown(w, w.journal, &w.journal_capacity, sizeof(JournalEntry))
    if moved == NULL:
        return NULL
    w.journal = <JournalEntry*>moved
    w.journal_size += 1
    return &w.journal[w.journal_size - 1]


cdef JournalEntry* journal_record(
    World* w, JournalKind kind, Account* a, uint32_t stamp
) noexcept nogil:
    cdef JournalEntry* entry = journal_next(w)
    if entry != NULL:
        entry.kind = kind
        entry.account = a
        entry.stamp = stamp
    return entry


cdef bint list_account(
    World* w, Account*** items, size_t* count, size_t* capacity, Account* a
) noexcept nogil:
    cdef void* moved
    if count[0] == capacity[0]:
        moved = list_grown(w, items[0], capacity, sizeof(Account*))
        if moved == NULL:
            return False
        items[0] = <Account**>moved
    items[0][count[0]] = a
    count[0] += 1
    return True


cdef void journal_forget(World* w) noexcept nogil:
    """Empties the journal and releases the codes that were replaced."""
    cdef size_t i
    cdef JournalEntry* entry
    for i in range(w.journal_size):
        entry = &w.journal[i]
        if entry.kind == JOURNAL_CODE and entry.stamp:
            code_release(<Code*>entry.target)
    w.journal_size = 0


cdef void put_code(Account* a, Code* code, bint owns) noexcept nogil:
    a.code = code
    a.owns_code = owns
    a.code_hash = EMPTY_CODE_HASH if code == NULL else code.hash
    a.dirty |= DIRTY_FIELDS


cdef void world_checkpoint(const World* w, Checkpoint* out) noexcept nogil:
    out.journal_size = w.journal_size
    out.log_count = w.log_count
    out.refund = w.refund


cdef void undo(World* w, const JournalEntry* entry) noexcept nogil:
    cdef Account* a = entry.account
    cdef uint32_t kind = entry.kind
    if kind == JOURNAL_SLOT:
        word_copy(&(<Slot*>entry.target).current, &entry.value)
    elif kind == JOURNAL_SLOT_WARM:
        (<Slot*>entry.target).warm_tx = entry.stamp
    elif kind == JOURNAL_ACCOUNT_WARM:
        a.warm_tx = entry.stamp
    elif kind == JOURNAL_BALANCE:
        word_copy(&a.balance, &entry.value)
    elif kind == JOURNAL_NONCE:
        a.nonce = entry.value.d[0]
    elif kind == JOURNAL_CODE:
        if a.owns_code:
            code_release(a.code)
        put_code(a, <Code*>entry.target, entry.stamp != 0)
    elif kind == JOURNAL_EXISTS:
        a.exists = False
    elif kind == JOURNAL_TOUCH:
        a.touched_tx = entry.stamp
        w.touched_count -= 1
    elif kind == JOURNAL_CREATED:
        a.created_tx = entry.stamp
    elif kind == JOURNAL_DESTROY:
        a.destroyed_tx = entry.stamp
        w.destroyed_count -= 1
    elif kind == JOURNAL_DELEGATED:
        a.delegated_tx = entry.stamp
    elif kind == JOURNAL_TRANSIENT:
        word_copy(&(<TransientSlot*>entry.target).value, &entry.value)


cdef void world_rollback(World* w, const Checkpoint* checkpoint) noexcept nogil:
    while w.journal_size > checkpoint.journal_size:
        w.journal_size -= 1
        undo(w, &w.journal[w.journal_size])
    w.log_count = checkpoint.log_count
    w.refund = checkpoint.refund
