# The journaled state of one execution: accounts, slots, logs and refunds over an immutable base.
#
# The only file that users of a world need to cimport: it includes records and writes.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash, address_eq
from fastevm.core.primitives.intrinsics cimport likely, unlikely
from fastevm.core.primitives.table cimport hash_address, hash_word
from fastevm.core.primitives.word cimport Word, word_eq, word_to_address
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.accesses cimport (
    accesses_count,
    accesses_encode,
    world_record_accesses,
    world_record_account,
    world_record_slot,
)
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.code cimport Code
from fastevm.core.state.journal cimport world_checkpoint, world_rollback
from fastevm.core.state.reader cimport AccountData, Reader, ReadStatus
from fastevm.core.state.records cimport (
    NEED_NOTHING,
    WORLD_NEEDS_ACCOUNT,
    WORLD_NEEDS_BLOCK_HASH,
    WORLD_NEEDS_CODE,
    WORLD_NEEDS_SLOT,
    WORLD_OUT_OF_MEMORY,
    Checkpoint,
    JournalEntry,
    LogRecord,
    TransientSlot,
    World,
    WorldNeed,
)
from fastevm.core.state.writes cimport (
    slot_original,
    world_add_balance,
    world_add_refund,
    world_create_contract,
    world_destroy,
    world_log,
    world_log_burn,
    world_log_burns,
    world_log_transfer,
    world_mark_delegated,
    world_set_balance,
    world_set_code,
    world_set_nonce,
    world_set_slot,
    world_sub_balance,
    world_touch,
    world_transfer,
    world_transient_get,
    world_transient_set,
    world_warm_account,
    world_warm_slot,
)


# --- allocation and transactions ---
cdef World* world_new() noexcept nogil                       # NULL if out of memory
cdef void world_free(World* w) noexcept nogil
cdef void world_begin(World* w, const Reader* reader) noexcept nogil   # empties it for reuse
# Starts a transaction: new stamp, nothing warm, no refund, empty journal.
cdef void world_begin_transaction(World* w) noexcept nogil
# Ends a transaction: destroys accounts after SELFDESTRUCT and deletes touched empty accounts
# (EIP-161). Keeps the logs; transient storage ends with the stamp of the next transaction.
cdef bint world_end_transaction(World* w) noexcept nogil     # False if out of memory

# --- reads; NULL or False: state is missing, see w.need, and nothing has changed ---
# Returned records stay valid until the world begins another execution.
cdef Account* world_load_account(World* w, const Address* address) noexcept nogil
cdef Slot* world_load_slot(World* w, Account* a, const Word* key) noexcept nogil
cdef bint world_block_hash(World* w, uint64_t number, Hash* out) noexcept nogil
cdef bint account_has_storage(const Account* a) noexcept nogil
# Asks the reader whether guarded code may be read. Returns False if not.
cdef bint world_open_code(World* w, const Address* address, Code* code) noexcept nogil
# Return records if they are loaded, else NULL. Threads may call them while no thread writes.
cdef Account* world_find_account(const World* w, const Address* address) noexcept nogil
cdef Slot* world_find_slot(const World* w, const Account* a, const Word* key) noexcept nogil
# Adds an entry to the deferred access list of the transaction, whose accounts and slots are loaded
# on first use. `key`: a slot, or NULL for the account itself. Returns False if memory is exhausted.
cdef bint world_list(World* w, const Address* address, const Word* key) noexcept nogil
# Whether the deferred access list has this entry.
cdef bint world_lists(const World* w, const Address* address, const Word* key) noexcept nogil


cdef inline void world_follow(World* w, const Schedule* s) noexcept nogil:
    """Copies the fork rules that only the world uses."""
    w.clears_empty_accounts = s.clears_empty_accounts
    w.has_transfer_logs = s.has_transfer_logs
    w.has_burn_logs = s.has_burn_logs
    w.selfdestruct_keeps_balance = s.selfdestruct_keeps_balance


cdef inline Account* world_account(World* w, const Address* address) noexcept nogil:
    """Returns the record of an account, even if the account does not exist. NULL: see w.need."""
    cdef size_t at = hash_address(address, w.seed) & w.account_mask
    cdef Account* a = w.accounts[at]
    while a != NULL:
        if likely(address_eq(&a.address, address)):
            return a
        at = (at + 1) & w.account_mask
        a = w.accounts[at]
    return world_load_account(w, address)


cdef inline Account* world_account_of_word(World* w, const Word* address) noexcept nogil:
    cdef Address key
    word_to_address(&key, address)
    return world_account(w, &key)


cdef inline Slot* world_slot(World* w, Account* a, const Word* key) noexcept nogil:
    cdef size_t at
    cdef Slot* s
    if likely(a.slot_mask != 0):
        at = hash_word(key, w.seed) & a.slot_mask
        s = a.slots[at]
        while s != NULL:
            if likely(word_eq(&s.key, key)):
                return s
            at = (at + 1) & a.slot_mask
            s = a.slots[at]
    return world_load_slot(w, a, key)


cdef inline bint world_is_cold_account(World* w, Account* a) noexcept nogil:
    """Warms the account. Returns True if it was cold and is not in a deferred access list."""
    if likely(not world_warm_account(w, a)):
        return False
    if w.warm_coinbase != NULL and address_eq(&a.address, w.warm_coinbase):
        w.coinbase_seen = True
        return False
    return likely(w.listed_count == 0) or not world_lists(w, &a.address, NULL)


cdef inline bint world_is_cold_slot(World* w, Account* a, Slot* slot) noexcept nogil:
    """Warms the slot. Returns True if it was cold and is not in a deferred access list."""
    if not world_warm_slot(w, a, slot):
        return False
    return likely(w.listed_count == 0) or not world_lists(w, &a.address, &slot.key)


cdef inline bint world_knows_code(World* w, const Account* a) noexcept nogil:
    """Whether the code, if any, may be read. If not, execution cannot continue: see w.need."""
    if unlikely(a.code != NULL and a.code.is_guarded):
        return world_open_code(w, &a.address, a.code)
    return True


cdef inline bint account_is_empty(const Account* a) noexcept nogil:
    """Whether the account has nonce 0, balance 0 and no code (EIP-161)."""
    return (
        a.nonce == 0 and a.code == NULL
        and (a.balance.d[0] | a.balance.d[1] | a.balance.d[2] | a.balance.d[3]) == 0
    )


cdef inline bint account_is_dead(const Account* a) noexcept nogil:
    return not a.exists or account_is_empty(a)


# --- changes outside of transactions: overrides, genesis, tests. Not journaled, but committed ---
# Takes over the reference to `code`.
cdef bint world_put_account(
    World* w, Account* a, const Word* balance, uint64_t nonce, Code* code
) noexcept nogil
cdef bint world_put_slot(World* w, Account* a, const Word* key, const Word* value) noexcept nogil
cdef void world_remove_account(World* w, Account* a) noexcept nogil
cdef bint world_reset_storage(World* w, Account* a) noexcept nogil

# --- merging results of other worlds, between transactions. NULL or False: memory is exhausted ---
# Adds a blank record of an account that is not loaded.
cdef Account* world_new_account(World* w, const Address* address) noexcept nogil
# Sets a slot without reading the base.
cdef bint world_adopt_slot(World* w, Account* a, const Word* key, const Word* value) noexcept nogil
# Copies all logs of `other`.
cdef bint world_adopt_logs(World* w, const World* other) noexcept nogil

# --- state provided by the host after a need (remote state) ---
cdef bint world_provide_account(
    World* w, const Address* address, const Word* balance, uint64_t nonce, Code* code,
    bint exists, bint has_storage,
) noexcept nogil
cdef bint world_provide_slot(
    World* w, const Address* address, const Word* key, const Word* value
) noexcept nogil
