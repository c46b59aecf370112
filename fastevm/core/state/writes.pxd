# Journaled writes, which can be reverted until the transaction ends. They return False if memory is
# exhausted.
#
# A write to an account creates the account if it is missing, unless the comment says otherwise. A
# write to a slot does not create the account.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.primitives.word cimport Word, word_copy
from fastevm.core.state.account cimport DIRTY_STORAGE, Account, Slot
from fastevm.core.state.code cimport Code
from fastevm.core.state.journal cimport journal_next
from fastevm.core.state.records cimport (
    JOURNAL_ACCOUNT_WARM,
    JOURNAL_SLOT,
    JOURNAL_SLOT_WARM,
    JournalEntry,
    LogRecord,
    World,
)


# --- warm marks: mark an account or slot warm, return True if it was cold; journaled ---
cdef inline bint world_warm_account(World* w, Account* a) noexcept nogil:
    cdef JournalEntry* entry
    if likely(a.warm_tx == w.tx):
        return False
    entry = journal_next(w)
    if entry != NULL:
        entry.kind = JOURNAL_ACCOUNT_WARM
        entry.stamp = a.warm_tx
        entry.account = a
        a.warm_tx = w.tx
    return True


cdef inline bint world_warm_slot(World* w, Account* a, Slot* s) noexcept nogil:
    cdef JournalEntry* entry
    if likely(s.warm_tx == w.tx):
        return False
    entry = journal_next(w)
    if entry != NULL:
        entry.kind = JOURNAL_SLOT_WARM
        entry.stamp = s.warm_tx
        entry.account = a
        entry.target = s
        s.warm_tx = w.tx
    return True


cdef inline const Word* slot_original(const World* w, const Slot* s) noexcept nogil:
    """Returns the slot's value at the start of the current transaction."""
    return &s.original if s.written_tx == w.tx else &s.current


cdef inline bint world_set_slot(World* w, Account* a, Slot* s, const Word* value) noexcept nogil:
    cdef JournalEntry* entry = journal_next(w)
    if entry == NULL:
        return False
    entry.kind = JOURNAL_SLOT
    entry.account = a
    entry.target = s
    word_copy(&entry.value, &s.current)
    if s.written_tx != w.tx:
        s.written_tx = w.tx
        word_copy(&s.original, &s.current)
    word_copy(&s.current, value)
    s.dirty = 1
    a.dirty |= DIRTY_STORAGE
    return True


cdef bint world_transient_get(World* w, Account* a, const Word* key, Word* out) noexcept nogil
cdef bint world_transient_set(
    World* w, Account* a, const Word* key, const Word* value
) noexcept nogil
# Touches the account: an account that is empty at the end of the transaction is deleted (EIP-161).
# Before EIP-161: creates the account.
cdef bint world_touch(World* w, Account* a) noexcept nogil
cdef bint world_set_balance(World* w, Account* a, const Word* balance) noexcept nogil
# Touches the account, even with amount 0.
cdef bint world_add_balance(World* w, Account* a, const Word* amount) noexcept nogil
# The caller must have checked the balance.
cdef bint world_sub_balance(World* w, Account* a, const Word* amount) noexcept nogil
# Touches both accounts; see world_log_transfer.
cdef bint world_transfer(
    World* w, Account* sender, Account* recipient, const Word* value
) noexcept nogil
cdef bint world_set_nonce(World* w, Account* a, uint64_t nonce) noexcept nogil
# Takes over the caller's reference; NULL = no code.
cdef bint world_set_code(World* w, Account* a, Code* code) noexcept nogil
# Touches the account and marks it as created in this transaction.
cdef bint world_create_contract(World* w, Account* a, uint64_t nonce) noexcept nogil
# Marks that an authorization of this transaction has paid for a delegation of the account.
cdef bint world_mark_delegated(World* w, Account* a) noexcept nogil
# Lists the account for destruction at the end of the transaction.
cdef bint world_destroy(World* w, Account* a) noexcept nogil
# Appends a record, which the caller fills in. NULL if memory is exhausted.
cdef LogRecord* world_next_log(World* w) noexcept nogil
cdef bint world_log(
    World* w, const Address* address, const Word* topics, uint32_t topic_count,
    const uint8_t* data, size_t size,
) noexcept nogil
# Adds a transfer log of the fork (EIP-7708) or a pseudo log, if enabled and value > 0.
cdef bint world_log_transfer(
    World* w, const Address* sender, const Address* recipient, const Word* value
) noexcept nogil
# Adds a burn log if w.has_burn_logs and amount > 0.
cdef bint world_log_burn(World* w, const Address* address, const Word* amount) noexcept nogil
# Adds burn logs for the balances of accounts about to be destroyed, in order of address.
cdef bint world_log_burns(World* w) noexcept nogil


cdef inline void world_add_refund(World* w, int64_t amount) noexcept nogil:
    w.refund += amount
