"""Writes to a world, each recorded in the journal before it happens."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from fastevm.core.primitives.arena cimport arena_alloc
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.table cimport hash_word
from fastevm.core.primitives.word cimport (
    Word,
    word_add,
    word_copy,
    word_eq,
    word_from_address,
    word_is_zero,
    word_load,
    word_store,
    word_sub,
    word_zero,
)
from fastevm.core.state.account cimport DIRTY_FIELDS, Account
from fastevm.core.state.code cimport Code, code_release
from fastevm.core.state.journal cimport (
    journal_record,
    list_account,
    list_grown,
    no_memory,
    put_code,
)
from fastevm.core.state.records cimport (
    JOURNAL_BALANCE,
    JOURNAL_CODE,
    JOURNAL_CREATED,
    JOURNAL_DELEGATED,
    JOURNAL_DESTROY,
    JOURNAL_EXISTS,
    JOURNAL_NONCE,
    JOURNAL_TOUCH,
    JOURNAL_TRANSIENT,
    JournalEntry,
    LogRecord,
    TransientSlot,
    World,
)


cdef enum:
    FIRST_TRANSIENT = 16          # table entries


cdef TransientSlot** transient_bucket(
    const World* w, const Account* a, const Word* key
) noexcept nogil:
    cdef size_t at = (hash_word(
        key, w.seed) + a.index * <uint64_t>0x9e3779b97f4a7c15
    ) & w.transient_mask
    cdef TransientSlot* t = w.transient[at]
    while t != NULL and not (t.account == a and word_eq(&t.key, key)):
        at = (at + 1) & w.transient_mask
        t = w.transient[at]
    return &w.transient[at]


cdef bint grow_transient(World* w) noexcept nogil:
    cdef TransientSlot** old = w.transient
    cdef size_t old_size = w.transient_mask + 1 if old != NULL else 0
    cdef size_t size = old_size * 2 if old_size else FIRST_TRANSIENT
    cdef size_t i
    w.transient = <TransientSlot**>PyMem_RawCalloc(size, sizeof(TransientSlot*))
    if w.transient == NULL:
        w.transient = old
        return no_memory(w)
    w.transient_mask = size - 1
    for i in range(old_size):
        if old[i] != NULL:
            transient_bucket(w, old[i].account, &old[i].key)[0] = old[i]
    PyMem_RawFree(old)
    return True


cdef bint world_transient_get(World* w, Account* a, const Word* key, Word* out) noexcept nogil:
    cdef TransientSlot* t
    word_zero(out)
    if w.transient_count:
        t = transient_bucket(w, a, key)[0]
        if t != NULL and t.tx == w.tx:
            word_copy(out, &t.value)
    return True


cdef bint world_transient_set(
    World* w, Account* a, const Word* key, const Word* value
) noexcept nogil:
    cdef TransientSlot** bucket
    cdef TransientSlot* t
    cdef JournalEntry* entry
    if w.transient == NULL or (w.transient_count + 1) * 2 > w.transient_mask:
        if not grow_transient(w):
            return False
    bucket = transient_bucket(w, a, key)
    if bucket[0] == NULL:
        t = <TransientSlot*>arena_alloc(w.arena, sizeof(TransientSlot))
        if t == NULL:
            return no_memory(w)
        memset(t, 0, sizeof(TransientSlot))
        t.account = a
        word_copy(&t.key, key)
        bucket[0] = t
        w.transient_count += 1
    t = bucket[0]
    if t.tx != w.tx:
        t.tx = w.tx
        word_zero(&t.value)
    entry = journal_record(w, JOURNAL_TRANSIENT, a, 0)
    if entry == NULL:
        return False
    entry.target = t
    word_copy(&entry.value, &t.value)
    word_copy(&t.value, value)
    return True


cdef bint mark_existing(World* w, Account* a) noexcept nogil:
    if not a.exists:
        if journal_record(w, JOURNAL_EXISTS, a, 0) == NULL:
            return False
        a.exists = True
        a.dirty |= DIRTY_FIELDS
    return True


cdef bint world_touch(World* w, Account* a) noexcept nogil:
    if a.touched_tx != w.tx:
        if journal_record(w, JOURNAL_TOUCH, a, a.touched_tx) == NULL:
            return False
        if not list_account(w, &w.touched, &w.touched_count, &w.touched_capacity, a):
            return False
        a.touched_tx = w.tx
    return w.clears_empty_accounts or mark_existing(w, a)


cdef bint world_set_balance(World* w, Account* a, const Word* balance) noexcept nogil:
    cdef JournalEntry* entry
    if not mark_existing(w, a):
        return False
    entry = journal_record(w, JOURNAL_BALANCE, a, 0)
    if entry == NULL:
        return False
    word_copy(&entry.value, &a.balance)
    word_copy(&a.balance, balance)
    a.dirty |= DIRTY_FIELDS
    return True


cdef bint world_add_balance(World* w, Account* a, const Word* amount) noexcept nogil:
    cdef Word sum
    if not world_touch(w, a):
        return False
    if word_is_zero(amount):
        return True
    word_add(&sum, &a.balance, amount)
    return world_set_balance(w, a, &sum)


cdef bint world_sub_balance(World* w, Account* a, const Word* amount) noexcept nogil:
    cdef Word rest
    if word_is_zero(amount):
        return True
    word_sub(&rest, &a.balance, amount)
    return world_set_balance(w, a, &rest)


cdef bint world_transfer(
    World* w, Account* sender, Account* recipient, const Word* value
) noexcept nogil:
    return (
        world_sub_balance(w, sender, value)
        and world_touch(w, sender)
        and world_add_balance(w, recipient, value)
        and (
            not (w.log_transfers or w.has_transfer_logs)
            or world_log_transfer(w, &sender.address, &recipient.address, value)
        )
    )


cdef bint world_set_nonce(World* w, Account* a, uint64_t nonce) noexcept nogil:
    cdef JournalEntry* entry
    if not mark_existing(w, a):
        return False
    entry = journal_record(w, JOURNAL_NONCE, a, 0)
    if entry == NULL:
        return False
    entry.value.d[0] = a.nonce
    a.nonce = nonce
    a.dirty |= DIRTY_FIELDS
    return True


cdef bint world_set_code(World* w, Account* a, Code* code) noexcept nogil:
    cdef JournalEntry* entry
    if code != NULL and code.size == 0:
        code_release(code)
        code = NULL
    if not mark_existing(w, a):
        code_release(code)
        return False
    entry = journal_record(w, JOURNAL_CODE, a, a.owns_code)
    if entry == NULL:
        code_release(code)
        return False
    entry.target = a.code   # the journal takes over the record's reference, if any
    put_code(a, code, code != NULL)
    return True


cdef bint world_create_contract(World* w, Account* a, uint64_t nonce) noexcept nogil:
    if not (world_touch(w, a) and world_set_nonce(w, a, nonce)):
        return False
    if journal_record(w, JOURNAL_CREATED, a, a.created_tx) == NULL:
        return False
    a.created_tx = w.tx
    return True


cdef bint world_mark_delegated(World* w, Account* a) noexcept nogil:
    if journal_record(w, JOURNAL_DELEGATED, a, a.delegated_tx) == NULL:
        return False
    a.delegated_tx = w.tx
    return True


cdef bint world_destroy(World* w, Account* a) noexcept nogil:
    if a.destroyed_tx == w.tx:
        return True
    if journal_record(w, JOURNAL_DESTROY, a, a.destroyed_tx) == NULL:
        return False
    a.destroyed_tx = w.tx
    return list_account(w, &w.destroyed, &w.destroyed_count, &w.destroyed_capacity, a)


# keccak256("Transfer(address,address,uint256)") and keccak256("Burn(address,uint256)"), the address
# that represents ether in pseudo logs, and the address that emits the logs of EIP-7708
cdef Word TRANSFER_TOPIC
cdef Word BURN_TOPIC
cdef Address ETHER_ADDRESS
cdef Address SYSTEM_ADDRESS


cdef LogRecord* world_next_log(World* w) noexcept nogil:
    cdef void* moved
    if w.log_count == w.log_capacity:
        moved = list_grown(w, w.logs, &w.log_capacity, sizeof(LogRecord))
        if moved == NULL:
            return NULL
        w.logs = <LogRecord*>moved
    w.log_count += 1
    return &w.logs[w.log_count - 1]


cdef bint world_log(
    World* w, const Address* address, const Word* topics, uint32_t topic_count,
    const uint8_t* data, size_t size,
) noexcept nogil:
    cdef uint8_t* copy = <uint8_t*>arena_alloc(w.arena, size + 1)
    cdef LogRecord* log = world_next_log(w) if copy != NULL else NULL
    cdef uint32_t i
    if log == NULL:
        return no_memory(w)
    if size:
        memcpy(copy, data, size)
    log.address = address[0]
    log.topic_count = topic_count
    for i in range(topic_count):
        word_copy(&log.topics[i], &topics[i])
    log.data = copy
    log.size = size
    log.pseudo = False
    log.index = w.log_index
    w.log_index += 1
    return True


cdef bint world_log_transfer(
    World* w, const Address* sender, const Address* recipient, const Word* value,
) noexcept nogil:
    cdef Word topics[3]
    cdef uint8_t data[32]
    if not (w.log_transfers or w.has_transfer_logs) or word_is_zero(value):
        return True
    word_copy(&topics[0], &TRANSFER_TOPIC)
    word_from_address(&topics[1], sender)
    word_from_address(&topics[2], recipient)
    word_store(data, value)
    if w.has_transfer_logs:
        return address_eq(sender, recipient) or world_log(
            w, &SYSTEM_ADDRESS, topics, 3, data, 32
        )
    if not world_log(w, &ETHER_ADDRESS, topics, 3, data, 32):
        return False
    w.logs[w.log_count - 1].pseudo = True
    return True


cdef bint world_log_burn(World* w, const Address* address, const Word* amount) noexcept nogil:
    cdef Word topics[2]
    cdef uint8_t data[32]
    if not w.has_burn_logs or word_is_zero(amount):
        return True
    word_copy(&topics[0], &BURN_TOPIC)
    word_from_address(&topics[1], address)
    word_store(data, amount)
    return world_log(w, &SYSTEM_ADDRESS, topics, 2, data, 32)


cdef bint world_log_burns(World* w) noexcept nogil:
    cdef size_t i, j
    cdef Account* a
    if not w.has_burn_logs:
        return True
    for i in range(1, w.destroyed_count):   # insertion sort: there are few destroyed accounts
        a = w.destroyed[i]
        j = i
        while j > 0 and memcmp(w.destroyed[j - 1].address.b, a.address.b, 20) > 0:
            w.destroyed[j] = w.destroyed[j - 1]
            j -= 1
        w.destroyed[j] = a
    for i in range(w.destroyed_count):
        a = w.destroyed[i]
        if not world_log_burn(w, &a.address, &a.balance):
            return False
    return True


cdef void init_constants() noexcept:
    cdef bytes topic = bytes.fromhex(
        "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    )
    cdef bytes burn = bytes.fromhex(
        "cc16f5dbb4873280815c1ee09dbd06736cffcc184412cf7a71a0fdb75d397ca5"
    )
    word_load(&TRANSFER_TOPIC, <const uint8_t*><const char*>topic)
    word_load(&BURN_TOPIC, <const uint8_t*><const char*>burn)
    memset(&ETHER_ADDRESS, 0xee, sizeof(Address))
    memset(&SYSTEM_ADDRESS, 0xff, sizeof(Address))
    SYSTEM_ADDRESS.b[19] = 0xfe


init_constants()
