"""Multi-version memory (Block-STM): threads read the newest versions while one publishes."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.primitives.arena cimport Arena, arena_alloc
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.intrinsics cimport (
    atomic_claim_pointer,
    atomic_observe_pointer,
    process_seed,
)
from fastevm.core.primitives.table cimport hash_address, hash_word
from fastevm.core.primitives.word cimport Word, word_copy, word_eq, word_zero
from fastevm.core.state.account cimport DIRTY_FIELDS, DIRTY_STORAGE, Account, Slot
from fastevm.core.state.code cimport EMPTY_CODE_HASH, code_release, code_retain
from fastevm.core.state.reader cimport READ_FOUND, READ_MISSING, AccountData, ReadStatus
from fastevm.core.state.records cimport World
from fastevm.core.state.world cimport (
    account_has_storage,
    world_adopt_slot,
    world_find_account,
    world_find_slot,
    world_new_account,
    world_reset_storage,
)


cdef enum:
    GAS_PER_BUCKET = 4096     # since Berlin, a new account or slot costs at least half of this gas
    FEWEST_BUCKETS = 1 << 10
    MOST_BUCKETS = 1 << 18


cdef size_t buckets_for(uint64_t gas_limit) noexcept nogil:
    cdef size_t buckets = FEWEST_BUCKETS
    while buckets < MOST_BUCKETS and buckets * GAS_PER_BUCKET < gas_limit:
        buckets *= 2
    return buckets


cdef bint mv_begin(MultiVersionMemory* v, World* below, uint64_t gas_limit) noexcept nogil:
    cdef size_t buckets = buckets_for(gas_limit)
    v.below = below
    v.seed = process_seed()
    v.owners = NULL
    if v.buckets != buckets:
        mv_free(v)
        v.accounts = <AccountEntry**>PyMem_RawCalloc(buckets, sizeof(AccountEntry*))
        v.slots = <SlotEntry**>PyMem_RawCalloc(buckets, sizeof(SlotEntry*))
        if v.accounts == NULL or v.slots == NULL:
            mv_free(v)
            return False
        v.buckets = buckets
        return True
    memset(v.accounts, 0, buckets * sizeof(AccountEntry*))
    memset(v.slots, 0, buckets * sizeof(SlotEntry*))
    return True


cdef void mv_end(MultiVersionMemory* v) noexcept nogil:
    while v.owners != NULL:
        code_release(v.owners.code)
        v.owners = v.owners.next_owner


cdef void mv_free(MultiVersionMemory* v) noexcept nogil:
    PyMem_RawFree(v.accounts)
    PyMem_RawFree(v.slots)
    v.accounts = NULL
    v.slots = NULL
    v.buckets = 0


# ----------------------------------------------------------------------------------------------
# entries

cdef AccountEntry* account_in(
    AccountEntry* chain, const AccountEntry* end, const Address* address
) noexcept nogil:
    """Returns the entry of an account in a bucket's chain, which is searched up to ``end``.

    NULL if there is none.
    """
    while chain != end:
        if address_eq(&chain.address, address):
            return chain
        chain = chain.next
    return NULL


cdef SlotEntry* slot_in(
    SlotEntry* chain, const SlotEntry* end, const AccountEntry* account, const Word* key
) noexcept nogil:
    while chain != end:
        if chain.account == account and word_eq(&chain.key, key):
            return chain
        chain = chain.next
    return NULL


cdef bint read_below(
    MultiVersionMemory* v, AccountEntry* entry, AccountVersion* first
) noexcept nogil:
    """Reads the account from the world below or from its reader. Returns False if it is missing."""
    cdef AccountData data
    cdef ReadStatus status
    cdef const Account* a = world_find_account(v.below, &entry.address)
    memset(&data, 0, sizeof(data))
    if a != NULL:
        word_copy(&first.balance, &a.balance)
        first.nonce = a.nonce
        first.code = a.code
        first.code_hash = a.code_hash
        first.exists = a.exists
        first.has_storage = account_has_storage(a)
        entry.base_has_storage = a.base_has_storage
        entry.base_storage = a.storage
        return True
    status = v.below.reader.account(v.below.reader.base, &entry.address, &data)
    if status == READ_MISSING:
        return False
    if status == READ_FOUND:
        word_copy(&first.balance, &data.balance)
        first.nonce = data.nonce
        first.code = data.code
        first.code_hash = data.code_hash
        first.exists = True
        first.has_storage = entry.base_has_storage = data.has_storage
        entry.base_storage = data.storage
    return True


cdef AccountEntry* new_account_entry(
    MultiVersionMemory* v, Arena* arena, const Address* address
) noexcept nogil:
    cdef AccountEntry* entry = <AccountEntry*>arena_alloc(arena, sizeof(AccountEntry))
    cdef AccountVersion* first = <AccountVersion*>arena_alloc(arena, sizeof(AccountVersion))
    if entry == NULL or first == NULL:
        return NULL
    memset(entry, 0, sizeof(AccountEntry))
    memset(first, 0, sizeof(AccountVersion))
    first.code_hash = EMPTY_CODE_HASH
    entry.address = address[0]
    entry.current = entry.first = first
    return entry if read_below(v, entry, first) else NULL


cdef AccountEntry* mv_account(
    MultiVersionMemory* v, Arena* arena, const Address* address
) noexcept nogil:
    cdef void** bucket = <void**>&v.accounts[hash_address(address, v.seed) & (v.buckets - 1)]
    cdef AccountEntry* head = <AccountEntry*>atomic_observe_pointer(bucket)
    cdef AccountEntry* searched = NULL
    cdef AccountEntry* entry = account_in(head, NULL, address)
    cdef AccountEntry* made
    if entry != NULL:
        return entry
    made = new_account_entry(v, arena, address)
    while made != NULL:
        made.next = head
        if atomic_claim_pointer(bucket, head, made):
            return made
        # Another thread has added an entry to the bucket: this account or another.
        searched = head
        head = <AccountEntry*>atomic_observe_pointer(bucket)
        entry = account_in(head, searched, address)
        if entry != NULL:
            return entry
    return NULL


cdef bint read_slot_below(
    MultiVersionMemory* v, const AccountEntry* account, const Word* key, Word* out
) noexcept nogil:
    cdef ReadStatus status
    cdef const Account* a = world_find_account(v.below, &account.address)
    cdef const Slot* s = NULL
    word_zero(out)
    if a != NULL:
        s = world_find_slot(v.below, a, key)
        if s != NULL:
            word_copy(out, &s.current)
            return True
        if a.storage_reset:
            return True
    if account.base_has_storage:
        status = v.below.reader.slot(
            v.below.reader.base, account.base_storage, &account.address, key, out
        )
        if status == READ_MISSING:
            return False
        if status != READ_FOUND:
            word_zero(out)
    return True


cdef SlotEntry* mv_slot(
    MultiVersionMemory* v, Arena* arena, AccountEntry* account, const Word* key
) noexcept nogil:
    cdef uint64_t seed = v.seed ^ <uint64_t>account
    cdef void** bucket = <void**>&v.slots[hash_word(key, seed) & (v.buckets - 1)]
    cdef SlotEntry* head = <SlotEntry*>atomic_observe_pointer(bucket)
    cdef SlotEntry* searched = NULL
    cdef SlotEntry* entry = slot_in(head, NULL, account, key)
    cdef SlotEntry* made
    if entry != NULL:
        return entry
    made = <SlotEntry*>arena_alloc(arena, sizeof(SlotEntry))
    if made == NULL or not read_slot_below(v, account, key, &made.first.value):
        return NULL
    made.account = account
    word_copy(&made.key, key)
    made.first.epoch = 0
    made.current = &made.first
    while True:
        made.next = head
        if atomic_claim_pointer(bucket, head, made):
            return made
        searched = head
        head = <SlotEntry*>atomic_observe_pointer(bucket)
        entry = slot_in(head, searched, account, key)
        if entry != NULL:
            return entry


# ----------------------------------------------------------------------------------------------
# the end

cdef Account* account_below(MultiVersionMemory* v, AccountEntry* entry) noexcept nogil:
    """Returns the account's record in the world below, which is created if needed.

    NULL if memory is exhausted.
    """
    cdef Account* a = world_find_account(v.below, &entry.address)
    if a == NULL:
        a = world_new_account(v.below, &entry.address)
        if a == NULL:
            return NULL
        word_copy(&a.balance, &entry.first.balance)
        a.nonce = entry.first.nonce
        a.code = entry.first.code
        a.code_hash = entry.first.code_hash
        a.exists = entry.first.exists
        a.base_has_storage = entry.base_has_storage
        a.storage = entry.base_storage
    return a


cdef bint apply_account(MultiVersionMemory* v, AccountEntry* entry) noexcept nogil:
    cdef const AccountVersion* newest = entry.current
    cdef Account* a = account_below(v, entry)
    if a == NULL:
        return False
    if newest.epoch != 0:
        world_reset_storage(v.below, a)
    if newest.code != a.code:
        if a.owns_code:
            code_release(a.code)
        a.code = newest.code
        a.code_hash = newest.code_hash
        a.owns_code = newest.code != NULL
        code_retain(a.code)
    word_copy(&a.balance, &newest.balance)
    a.nonce = newest.nonce
    a.exists = newest.exists
    a.dirty |= DIRTY_FIELDS
    return True


cdef bint apply_slot(MultiVersionMemory* v, const SlotEntry* entry) noexcept nogil:
    cdef Account* a
    if entry.current.epoch != entry.account.current.epoch:
        return True
    a = account_below(v, entry.account)
    if a == NULL or not world_adopt_slot(v.below, a, &entry.key, &entry.current.value):
        return False
    a.dirty |= DIRTY_STORAGE
    return True


cdef bint mv_apply(MultiVersionMemory* v) noexcept nogil:
    cdef AccountEntry* account
    cdef SlotEntry* slot
    cdef size_t i
    for i in range(v.buckets):
        account = v.accounts[i]
        while account != NULL:
            if account.current != account.first and not apply_account(v, account):
                return False
            account = account.next
    for i in range(v.buckets):
        slot = v.slots[i]
        while slot != NULL:
            if slot.current != &slot.first and not apply_slot(v, slot):
                return False
            slot = slot.next
    return True
