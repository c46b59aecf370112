"""The journaled state of one execution: loads accounts and slots on first use, reverts changes."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.arena cimport arena_alloc, arena_free, arena_new, arena_reset
from fastevm.core.primitives.hashes cimport Address, Hash, address_eq
from fastevm.core.primitives.intrinsics cimport process_seed, unlikely
from fastevm.core.primitives.table cimport hash_address, hash_word
from fastevm.core.primitives.word cimport Word, word_copy, word_eq, word_is_zero, word_zero
from fastevm.core.state.accesses cimport accesses_forget, accesses_free, accesses_keep
from fastevm.core.state.account cimport DIRTY_FIELDS, DIRTY_RESET, DIRTY_STORAGE, Account, Slot
from fastevm.core.state.code cimport EMPTY_CODE_HASH, Code, code_release
from fastevm.core.state.journal cimport journal_forget, list_account, no_memory, put_code
from fastevm.core.state.reader cimport (
    READ_FOUND,
    READ_MISSING,
    READ_RECORDED,
    AccountData,
    Reader,
    ReadStatus,
)
from fastevm.core.state.records cimport Listed, LogRecord
from fastevm.core.state.writes cimport world_next_log


cdef enum:
    ARENA_CHUNK = 64 * 1024
    FIRST_ACCOUNTS = 32           # table entries of an empty world
    FIRST_SLOTS = 8               # table entries after an account's first slot
    FIRST_LISTED = 64             # table entries of a deferred access list
    KEPT_TABLE = 4096             # larger tables and lists are freed between executions
    STAMP_LIMIT = 0x70000000      # the execution after this stamp starts again with stamp 1


# ----------------------------------------------------------------------------------------------
# allocation and transactions

cdef World* world_new() noexcept nogil:
    cdef World* w = <World*>PyMem_RawCalloc(1, sizeof(World))
    if w == NULL:
        return NULL
    w.arena = arena_new(ARENA_CHUNK)
    w.seed = process_seed()
    w.accounts = <Account**>PyMem_RawCalloc(FIRST_ACCOUNTS, sizeof(Account*))
    w.account_mask = FIRST_ACCOUNTS - 1
    if w.arena == NULL or w.accounts == NULL:
        world_free(w)
        return NULL
    return w


cdef void release_codes(World* w) noexcept nogil:
    cdef size_t i
    journal_forget(w)
    for i in range(w.account_count):
        if w.account_list[i].owns_code:
            code_release(w.account_list[i].code)


cdef void world_free(World* w) noexcept nogil:
    if w == NULL:
        return
    release_codes(w)
    PyMem_RawFree(w.accounts)
    PyMem_RawFree(w.account_list)
    PyMem_RawFree(w.journal)
    PyMem_RawFree(w.logs)
    PyMem_RawFree(w.touched)
    PyMem_RawFree(w.destroyed)
    PyMem_RawFree(w.transient)
    accesses_free(w.accesses)
    accesses_free(w.idle_accesses)
    if w.arena != NULL:
        arena_free(w.arena)
    PyMem_RawFree(w)


cdef void empty_account_table(World* w) noexcept nogil:
    cdef Account** smaller
    if w.account_mask >= KEPT_TABLE:
        smaller = <Account**>PyMem_RawCalloc(FIRST_ACCOUNTS, sizeof(Account*))
        if smaller != NULL:
            PyMem_RawFree(w.accounts)
            w.accounts = smaller
            w.account_mask = FIRST_ACCOUNTS - 1
            return
    memset(w.accounts, 0, (w.account_mask + 1) * sizeof(Account*))


cdef void world_begin(World* w, const Reader* reader) noexcept nogil:
    release_codes(w)
    empty_account_table(w)
    w.account_count = 0
    w.journal_size = 0
    w.log_count = 0
    w.log_index = 0
    w.touched_count = 0
    w.destroyed_count = 0
    w.listed_count = 0
    w.warm_coinbase = NULL
    w.defers_coinbase = w.coinbase_seen = False
    if w.transient_count:
        PyMem_RawFree(w.transient)
        w.transient = NULL
        w.transient_mask = 0
        w.transient_count = 0
    if w.journal_capacity > KEPT_TABLE:
        PyMem_RawFree(w.journal)
        w.journal = NULL
        w.journal_capacity = 0
    if w.accesses != NULL:
        accesses_free(w.idle_accesses)
        w.idle_accesses = w.accesses
        w.accesses = NULL
    arena_reset(w.arena)
    if w.tx > STAMP_LIMIT:
        w.tx = 0
    w.reader = reader[0]
    w.refund = 0
    w.need = NEED_NOTHING
    w.log_transfers = False
    w.clears_empty_accounts = True
    w.has_transfer_logs = w.has_burn_logs = w.selfdestruct_keeps_balance = False


cdef void world_begin_transaction(World* w) noexcept nogil:
    journal_forget(w)
    if unlikely(w.accesses != NULL):
        accesses_forget(w.accesses)
    w.tx += 1
    w.refund = 0
    w.touched_count = 0
    w.destroyed_count = 0
    w.listed_count = 0


cdef void destroy_account(Account* a) noexcept nogil:
    """Makes the account non-existent. Its records stay valid until the execution ends."""
    if a.owns_code:
        code_release(a.code)
    a.code = NULL
    a.owns_code = False
    a.code_hash = EMPTY_CODE_HASH
    a.nonce = 0
    word_zero(&a.balance)
    a.exists = False
    drop_storage(a)
    a.dirty |= DIRTY_FIELDS


cdef void destroy_contract(const World* w, Account* a) noexcept nogil:
    """Destroys a contract after SELFDESTRUCT. In forks with EIP-8246, its balance stays."""
    cdef Word balance
    word_copy(&balance, &a.balance)
    destroy_account(a)
    if w.selfdestruct_keeps_balance and not word_is_zero(&balance):
        word_copy(&a.balance, &balance)
        a.exists = True


cdef void drop_storage(Account* a) noexcept nogil:
    cdef size_t i
    cdef Slot* s
    if a.slot_mask:
        for i in range(<size_t>a.slot_mask + 1):
            s = a.slots[i]
            if s != NULL:
                word_zero(&s.current)
                s.written_tx = 0
                s.dirty = 0
    a.storage_reset = True
    a.dirty |= DIRTY_RESET


cdef bint world_end_transaction(World* w) noexcept nogil:
    cdef size_t i
    cdef Account* a
    for i in range(w.destroyed_count):
        destroy_contract(w, w.destroyed[i])
    if w.clears_empty_accounts:
        for i in range(w.touched_count):
            a = w.touched[i]
            if a.exists and account_is_empty(a):
                destroy_account(a)
    if unlikely(w.accesses != NULL) and not accesses_keep(w):
        no_memory(w)
    w.destroyed_count = 0
    w.touched_count = 0
    journal_forget(w)
    return w.need != WORLD_OUT_OF_MEMORY


# ----------------------------------------------------------------------------------------------
# growing lists and tables

cdef bint grow_accounts(World* w) noexcept nogil:
    cdef size_t mask = (w.account_mask + 1) * 2 - 1
    cdef Account** larger = <Account**>PyMem_RawCalloc(mask + 1, sizeof(Account*))
    cdef size_t i, at
    if larger == NULL:
        return no_memory(w)
    for i in range(w.account_count):
        at = hash_address(&w.account_list[i].address, w.seed) & mask
        while larger[at] != NULL:
            at = (at + 1) & mask
        larger[at] = w.account_list[i]
    PyMem_RawFree(w.accounts)
    w.accounts = larger
    w.account_mask = mask
    return True


cdef Account* add_account(World* w, const Address* address) noexcept nogil:
    cdef size_t at
    cdef Account* a
    if (w.account_count + 1) * 2 > w.account_mask and not grow_accounts(w):
        return NULL
    a = <Account*>arena_alloc(w.arena, sizeof(Account))
    if a == NULL:
        no_memory(w)
        return NULL
    memset(a, 0, sizeof(Account) - sizeof(Word))  # all fields except `lowest`
    a.address = address[0]
    a.code_hash = EMPTY_CODE_HASH
    a.index = w.account_count
    if not list_account(w, &w.account_list, &w.account_count, &w.account_capacity, a):
        return NULL
    at = hash_address(address, w.seed) & w.account_mask
    while w.accounts[at] != NULL:
        at = (at + 1) & w.account_mask
    w.accounts[at] = a
    return a


cdef bint grow_slots(World* w, Account* a) noexcept nogil:
    cdef uint32_t mask = (a.slot_mask + 1) * 4 - 1 if a.slot_mask else FIRST_SLOTS - 1
    cdef Slot** larger = <Slot**>arena_alloc(w.arena, (<size_t>mask + 1) * sizeof(Slot*))
    cdef size_t i, at
    if larger == NULL:
        return no_memory(w)
    memset(larger, 0, (<size_t>mask + 1) * sizeof(Slot*))
    if a.slot_mask:
        for i in range(<size_t>a.slot_mask + 1):
            if a.slots[i] != NULL:
                at = hash_word(&a.slots[i].key, w.seed) & mask
                while larger[at] != NULL:
                    at = (at + 1) & mask
                larger[at] = a.slots[i]
    a.slots = larger
    a.slot_mask = mask
    return True


cdef Slot* add_slot(World* w, Account* a, const Word* key, const Word* value) noexcept nogil:
    cdef size_t at
    cdef Slot* s
    if (a.slot_count + 1) * 2 > a.slot_mask and not grow_slots(w, a):
        return NULL
    s = <Slot*>arena_alloc(w.arena, sizeof(Slot))
    if s == NULL:
        no_memory(w)
        return NULL
    memset(s, 0, sizeof(Slot))
    word_copy(&s.key, key)
    word_copy(&s.current, value)
    at = hash_word(key, w.seed) & a.slot_mask
    while a.slots[at] != NULL:
        at = (at + 1) & a.slot_mask
    a.slots[at] = s
    a.slot_count += 1
    return s


# ----------------------------------------------------------------------------------------------
# reads of values that are not loaded

cdef Account* world_load_account(World* w, const Address* address) noexcept nogil:
    cdef AccountData data
    cdef Account* a
    memset(&data, 0, sizeof(data))
    cdef ReadStatus status = w.reader.account(w.reader.base, address, &data)
    if status == READ_MISSING:
        w.need = WORLD_NEEDS_ACCOUNT
        w.need_address = address[0]
        return NULL
    a = add_account(w, address)
    if a != NULL and status == READ_FOUND:
        a.exists = True
        word_copy(&a.balance, &data.balance)
        a.nonce = data.nonce
        a.code = data.code
        a.code_hash = data.code_hash
        a.base_has_storage = data.has_storage
        a.storage = data.storage
    elif a != NULL and status == READ_RECORDED:
        a.storage = data.storage
    return a


cdef Slot* world_load_slot(World* w, Account* a, const Word* key) noexcept nogil:
    cdef Word value
    cdef ReadStatus status
    word_zero(&value)
    if a.base_has_storage and not a.storage_reset:
        status = w.reader.slot(w.reader.base, a.storage, &a.address, key, &value)
        if status == READ_MISSING:
            w.need = WORLD_NEEDS_SLOT
            w.need_address = a.address
            word_copy(&w.need_key, key)
            return NULL
        if status != READ_FOUND:
            word_zero(&value)
    return add_slot(w, a, key, &value)


cdef bint world_open_code(World* w, const Address* address, Code* code) noexcept nogil:
    if w.reader.code != NULL and w.reader.code(w.reader.base, address, code):
        code.is_guarded = False
        return True
    w.need = WORLD_NEEDS_CODE
    w.need_address = address[0]
    return False


cdef bint world_block_hash(World* w, uint64_t number, Hash* out) noexcept nogil:
    cdef ReadStatus status = w.reader.block_hash(w.reader.base, number, out)
    if status == READ_MISSING:
        w.need = WORLD_NEEDS_BLOCK_HASH
        w.need_number = number
        return False
    if status != READ_FOUND:
        memset(out, 0, sizeof(Hash))
    return True


cdef bint account_has_storage(const Account* a) noexcept nogil:
    cdef size_t i
    if a.base_has_storage and not a.storage_reset:
        return True
    if a.slot_mask:
        for i in range(<size_t>a.slot_mask + 1):
            if a.slots[i] != NULL and not word_is_zero(&a.slots[i].current):
                return True
    return False


# ----------------------------------------------------------------------------------------------
# reads of loaded values by threads while no thread writes, and merging of their results

cdef Account* world_find_account(const World* w, const Address* address) noexcept nogil:
    cdef size_t at = hash_address(address, w.seed) & w.account_mask
    while w.accounts[at] != NULL and not address_eq(&w.accounts[at].address, address):
        at = (at + 1) & w.account_mask
    return w.accounts[at]


cdef Slot* world_find_slot(const World* w, const Account* a, const Word* key) noexcept nogil:
    cdef size_t at
    if a.slot_mask == 0:
        return NULL
    at = hash_word(key, w.seed) & a.slot_mask
    while a.slots[at] != NULL and not word_eq(&a.slots[at].key, key):
        at = (at + 1) & a.slot_mask
    return a.slots[at]


cdef Account* world_new_account(World* w, const Address* address) noexcept nogil:
    return add_account(w, address)


cdef bint world_adopt_slot(World* w, Account* a, const Word* key, const Word* value) noexcept nogil:
    cdef Slot* s = world_find_slot(w, a, key)
    if s == NULL:
        s = add_slot(w, a, key, value)
        if s == NULL:
            return False
    word_copy(&s.current, value)
    s.written_tx = 0
    s.dirty = 1
    a.dirty |= DIRTY_STORAGE
    return True


cdef bint world_adopt_logs(World* w, const World* other) noexcept nogil:
    cdef LogRecord* log
    cdef size_t i
    for i in range(other.log_count):
        log = world_next_log(w)
        if log == NULL:
            return False
        log[0] = other.logs[i]
        log.data = <uint8_t*>arena_alloc(w.arena, log.size + 1)
        if log.data == NULL:
            w.log_count -= 1
            return no_memory(w)
        memcpy(log.data, other.logs[i].data, log.size)
        log.index += w.log_index
    w.log_index += other.log_index
    return True


# ----------------------------------------------------------------------------------------------
# deferred access lists: accounts are not read before code reads them

cdef Listed** listed_bucket(
    Listed** table, size_t mask, uint64_t seed, const Address* address, const Word* key
) noexcept nogil:
    """Returns the table position of the entry, or the empty position where it belongs."""
    cdef uint64_t mixed = hash_address(address, seed)
    cdef size_t at = (mixed if key == NULL else hash_word(key, mixed)) & mask
    cdef const Listed* entry = table[at]
    while entry != NULL:
        if entry.is_slot == (key != NULL) and address_eq(&entry.address, address):
            if key == NULL or word_eq(&entry.key, key):
                break
        at = (at + 1) & mask
        entry = table[at]
    return &table[at]


cdef bint world_lists(const World* w, const Address* address, const Word* key) noexcept nogil:
    return listed_bucket(w.listed, w.listed_mask, w.seed, address, key)[0] != NULL


cdef bint grow_listed(World* w) noexcept nogil:
    cdef size_t mask = (w.listed_mask + 1) * 4 - 1 if w.listed_count else FIRST_LISTED - 1
    cdef Listed** larger = <Listed**>arena_alloc(w.arena, (mask + 1) * sizeof(Listed*))
    cdef Listed* entry
    cdef size_t i
    if larger == NULL:
        return no_memory(w)
    memset(larger, 0, (mask + 1) * sizeof(Listed*))
    if w.listed_count:
        for i in range(w.listed_mask + 1):
            entry = w.listed[i]
            if entry != NULL:
                listed_bucket(
                    larger, mask, w.seed, &entry.address, &entry.key if entry.is_slot else NULL
                )[0] = entry
    w.listed = larger
    w.listed_mask = mask
    return True


cdef bint world_list(World* w, const Address* address, const Word* key) noexcept nogil:
    cdef Listed** bucket
    cdef Listed* entry
    if w.listed_count * 2 >= w.listed_mask or w.listed_count == 0:
        if not grow_listed(w):
            return False
    bucket = listed_bucket(w.listed, w.listed_mask, w.seed, address, key)
    if bucket[0] != NULL:
        return True
    entry = <Listed*>arena_alloc(w.arena, sizeof(Listed))
    if entry == NULL:
        return no_memory(w)
    memset(entry, 0, sizeof(Listed))
    entry.address = address[0]
    entry.is_slot = key != NULL
    if key != NULL:
        word_copy(&entry.key, key)
    bucket[0] = entry
    w.listed_count += 1
    return True


# ----------------------------------------------------------------------------------------------
# outside of transactions

cdef bint world_put_account(
    World* w, Account* a, const Word* balance, uint64_t nonce, Code* code,
) noexcept nogil:
    if code != NULL and code.size == 0:
        code_release(code)
        code = NULL
    if a.owns_code:
        code_release(a.code)
    put_code(a, code, code != NULL)
    word_copy(&a.balance, balance)
    a.nonce = nonce
    a.exists = True
    return True


cdef bint world_put_slot(World* w, Account* a, const Word* key, const Word* value) noexcept nogil:
    cdef Slot* s = world_slot(w, a, key)
    if s == NULL:
        return False
    word_copy(&s.current, value)
    s.written_tx = 0
    s.dirty = 1
    a.dirty |= DIRTY_STORAGE
    return True


cdef void world_remove_account(World* w, Account* a) noexcept nogil:
    destroy_account(a)


cdef bint world_reset_storage(World* w, Account* a) noexcept nogil:
    drop_storage(a)
    return True


cdef bint world_provide_account(
    World* w, const Address* address, const Word* balance, uint64_t nonce, Code* code,
    bint exists, bint has_storage,
) noexcept nogil:
    cdef Account* a = add_account(w, address)
    if a == NULL:
        code_release(code)
        return False
    w.need = NEED_NOTHING
    if exists:
        world_put_account(w, a, balance, nonce, code)
        a.dirty = 0
        a.base_has_storage = has_storage
    return True


cdef bint world_provide_slot(
    World* w, const Address* address, const Word* key, const Word* value,
) noexcept nogil:
    cdef Account* a = world_account(w, address)
    if a == NULL or add_slot(w, a, key, value) == NULL:
        return False
    w.need = NEED_NOTHING
    return True
