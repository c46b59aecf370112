"""Records the reads and changes of a block, and encodes its block access list (EIP-7928)."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memcpy, memset

from fastevm.core.primitives.arena cimport arena_alloc
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.rlp cimport (
    rlp_append_bytes,
    rlp_append_uint64,
    rlp_append_word,
    rlp_list_begin,
    rlp_list_end,
)
from fastevm.core.primitives.word cimport Word, word_copy, word_eq, word_load, word_lt, word_set
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.code cimport EMPTY_CODE_HASH, Code
from fastevm.core.state.records cimport (
    JOURNAL_BALANCE,
    JOURNAL_CODE,
    JOURNAL_NONCE,
    JOURNAL_SLOT,
    Accesses,
    AccountAccess,
    Change,
    ChangeLog,
    JournalEntry,
    SlotAccess,
    World,
)


cdef enum:
    FIRST_RECORDS = 64            # initial capacity for the accounts and slots of a block
    FIRST_CHANGES = 2             # initial capacity for the changes of one value
    KEPT_RECORDS = 4096           # larger arrays are freed between executions


cdef bint world_record_accesses(World* w) noexcept nogil:
    cdef Accesses* idle = w.idle_accesses
    if w.accesses != NULL:
        w.accesses.accounts_kept = w.accesses.slots_kept = 0
        accesses_forget(w.accesses)
    accesses_free(w.accesses)
    w.accesses = idle
    w.idle_accesses = NULL
    if idle == NULL or max(idle.account_capacity, idle.slot_capacity) > KEPT_RECORDS:
        accesses_free(idle)
        w.accesses = <Accesses*>PyMem_RawCalloc(1, sizeof(Accesses))
        return w.accesses != NULL
    idle.failed = False
    idle.index = 0
    idle.account_count = idle.accounts_kept = idle.slot_count = idle.slots_kept = 0
    return True


cdef void accesses_free(Accesses* accesses) noexcept nogil:
    if accesses != NULL:
        PyMem_RawFree(accesses.accounts)
        PyMem_RawFree(accesses.slots)
        PyMem_RawFree(accesses)


cdef void accesses_forget(Accesses* accesses) noexcept nogil:
    while accesses.account_count > accesses.accounts_kept:
        accesses.account_count -= 1
        accesses.accounts[accesses.account_count].account.listing = 0
    while accesses.slot_count > accesses.slots_kept:
        accesses.slot_count -= 1
        accesses.slots[accesses.slot_count].slot.listing = 0


# ----------------------------------------------------------------------------------------------
# reads

cdef void* next_record(
    Accesses* accesses, void** records, size_t* count, size_t* capacity, size_t size
) noexcept nogil:
    """Appends an empty record. Returns NULL if memory is exhausted."""
    cdef size_t larger = capacity[0] * 2 if capacity[0] else FIRST_RECORDS
    cdef void* record
    if count[0] == capacity[0]:
        record = PyMem_RawRealloc(records[0], larger * size)
        if record == NULL:
            accesses.failed = True
            return NULL
        records[0] = record
        capacity[0] = larger
    record = <uint8_t*>records[0] + count[0] * size
    memset(record, 0, size)
    count[0] += 1
    return record


cdef void record_account(World* w, Account* a) noexcept nogil:
    cdef Accesses* accesses = w.accesses
    cdef AccountAccess* record = <AccountAccess*>next_record(
        accesses, <void**>&accesses.accounts, &accesses.account_count,
        &accesses.account_capacity, sizeof(AccountAccess),
    )
    if record != NULL:
        record.account = a
        a.listing = <uint32_t>accesses.account_count


cdef void record_slot(World* w, Account* a, Slot* s) noexcept nogil:
    cdef Accesses* accesses = w.accesses
    cdef SlotAccess* record = <SlotAccess*>next_record(
        accesses, <void**>&accesses.slots, &accesses.slot_count,
        &accesses.slot_capacity, sizeof(SlotAccess),
    )
    world_record_account(w, a)
    if record != NULL:
        record.account = a
        record.slot = s
        s.listing = <uint32_t>accesses.slot_count


cdef size_t accesses_count(const Accesses* accesses) noexcept nogil:
    return accesses.accounts_kept + accesses.slots_kept


# ----------------------------------------------------------------------------------------------
# changes

cdef void note_before(const Accesses* accesses, ChangeLog* log, const Word* before) noexcept nogil:
    """Stores the value before the current index, if this is the first write at the index."""
    if log.written != accesses.index + 1:
        log.written = accesses.index + 1
        word_copy(&log.before, before)


cdef Change* next_change(World* w, ChangeLog* log) noexcept nogil:
    cdef uint32_t capacity = log.capacity * 2 if log.capacity else FIRST_CHANGES
    cdef Change* items
    if log.count == log.capacity:
        items = <Change*>arena_alloc(w.arena, capacity * sizeof(Change))
        if items == NULL:
            w.accesses.failed = True
            return NULL
        if log.count:
            memcpy(items, log.items, log.count * sizeof(Change))
        log.items = items
        log.capacity = capacity
    log.count += 1
    return &log.items[log.count - 1]


cdef Change* note_after(World* w, ChangeLog* log, const Word* now) noexcept nogil:
    """Adds, updates or removes the change at the current index.

    Returns NULL if the value is the same as before the index, or if memory is exhausted.
    """
    cdef uint32_t index = w.accesses.index
    cdef bint is_known = log.count != 0 and log.items[log.count - 1].index == index
    cdef Change* change
    if word_eq(&log.before, now):
        if is_known:
            log.count -= 1
        return NULL
    change = &log.items[log.count - 1] if is_known else next_change(w, log)
    if change != NULL:
        change.index = index
        change.code = NULL
        change.size = 0
        word_copy(&change.value, now)
    return change


cdef void note_code(World* w, ChangeLog* log, const Account* a) noexcept nogil:
    cdef Word now
    cdef Change* change
    cdef uint8_t* copy
    word_load(&now, a.code_hash.b)
    change = note_after(w, log, &now)
    if change == NULL or a.code == NULL:
        return
    # Copied, because the code may be freed before the list is encoded.
    copy = <uint8_t*>arena_alloc(w.arena, a.code.size + 1)
    if copy == NULL:
        w.accesses.failed = True
        return
    memcpy(copy, a.code.bytes, a.code.size)
    change.code = copy
    change.size = a.code.size


cdef void note_entry_before(World* w, const JournalEntry* entry) noexcept nogil:
    cdef Accesses* accesses = w.accesses
    cdef const Hash* code_hash = &EMPTY_CODE_HASH
    cdef AccountAccess* record
    cdef Word before
    if entry.kind == JOURNAL_SLOT:
        world_record_slot(w, entry.account, <Slot*>entry.target)
        if not accesses.failed:
            note_before(
                accesses, &accesses.slots[(<Slot*>entry.target).listing - 1].value, &entry.value
            )
        return
    if entry.kind not in (JOURNAL_BALANCE, JOURNAL_NONCE, JOURNAL_CODE):
        return
    world_record_account(w, entry.account)
    if accesses.failed:
        return
    record = &accesses.accounts[entry.account.listing - 1]
    if entry.kind == JOURNAL_BALANCE:
        note_before(accesses, &record.balance, &entry.value)
    elif entry.kind == JOURNAL_NONCE:
        word_set(&before, entry.value.d[0])
        note_before(accesses, &record.nonce, &before)
    else:
        if entry.target != NULL:
            code_hash = &(<Code*>entry.target).hash
        word_load(&before, code_hash.b)
        note_before(accesses, &record.code, &before)


cdef void note_entry_after(World* w, const JournalEntry* entry) noexcept nogil:
    cdef Accesses* accesses = w.accesses
    cdef const Account* a = entry.account
    cdef const Slot* s = <const Slot*>entry.target
    cdef Word nonce
    if entry.kind == JOURNAL_SLOT:
        note_after(w, &accesses.slots[s.listing - 1].value, &s.current)
    elif entry.kind == JOURNAL_BALANCE:
        note_after(w, &accesses.accounts[a.listing - 1].balance, &a.balance)
    elif entry.kind == JOURNAL_NONCE:
        word_set(&nonce, a.nonce)
        note_after(w, &accesses.accounts[a.listing - 1].nonce, &nonce)
    elif entry.kind == JOURNAL_CODE:
        note_code(w, &accesses.accounts[a.listing - 1].code, a)


cdef bint accesses_keep(World* w) noexcept nogil:
    cdef Accesses* accesses = w.accesses
    cdef size_t i
    for i in range(w.journal_size):
        note_entry_before(w, &w.journal[i])
    if not accesses.failed:
        for i in range(w.journal_size):
            note_entry_after(w, &w.journal[i])
    accesses.accounts_kept = accesses.account_count
    accesses.slots_kept = accesses.slot_count
    return not accesses.failed


# ----------------------------------------------------------------------------------------------
# the list

cdef int compare_accounts(const void* left, const void* right) noexcept nogil:
    cdef const AccountAccess* a = (<const AccountAccess**>left)[0]
    cdef const AccountAccess* b = (<const AccountAccess**>right)[0]
    return memcmp(a.account.address.b, b.account.address.b, 20)


cdef int compare_slots(const void* left, const void* right) noexcept nogil:
    cdef const SlotAccess* a = (<const SlotAccess**>left)[0]
    cdef const SlotAccess* b = (<const SlotAccess**>right)[0]
    if a.account != b.account:
        return memcmp(a.account.address.b, b.account.address.b, 20)
    return -1 if word_lt(&a.slot.key, &b.slot.key) else 1


cdef bint append_change(Buffer* out, const Change* change, bint is_code) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out)
    if not rlp_append_uint64(out, change.index):
        return False
    if is_code:
        return rlp_append_bytes(out, change.code, change.size) and rlp_list_end(out, mark)
    return rlp_append_word(out, &change.value) and rlp_list_end(out, mark)


cdef bint append_changes(Buffer* out, const ChangeLog* log, bint is_code) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out)
    cdef uint32_t i
    for i in range(log.count):
        if not append_change(out, &log.items[i], is_code):
            return False
    return rlp_list_end(out, mark)


cdef bint append_slot_changes(Buffer* out, SlotAccess** slots, size_t count) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out), one, i
    for i in range(count):
        if slots[i].value.count:
            one = rlp_list_begin(out)
            if not (
                rlp_append_word(out, &slots[i].slot.key)
                and append_changes(out, &slots[i].value, False)
                and rlp_list_end(out, one)
            ):
                return False
    return rlp_list_end(out, mark)


cdef bint append_slot_reads(Buffer* out, SlotAccess** slots, size_t count) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out), i
    for i in range(count):
        if not slots[i].value.count and not rlp_append_word(out, &slots[i].slot.key):
            return False
    return rlp_list_end(out, mark)


cdef bint append_account(
    Buffer* out, const AccountAccess* record, SlotAccess** slots, size_t count
) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out)
    return (
        rlp_append_bytes(out, record.account.address.b, 20)
        and append_slot_changes(out, slots, count)
        and append_slot_reads(out, slots, count)
        and append_changes(out, &record.balance, False)
        and append_changes(out, &record.nonce, False)
        and append_changes(out, &record.code, True)
        and rlp_list_end(out, mark)
    )


cdef bint append_list(
    const Accesses* accesses, AccountAccess** accounts, SlotAccess** slots, Buffer* out
) noexcept nogil:
    """Appends the RLP of the list. Both arrays are already sorted in the order of the list."""
    cdef size_t mark = rlp_list_begin(out), i, first = 0, end = 0
    for i in range(accesses.accounts_kept):
        first = end
        while end < accesses.slots_kept and slots[end].account == accounts[i].account:
            end += 1
        if not append_account(out, accounts[i], slots + first, end - first):
            return False
    return rlp_list_end(out, mark)


cdef bint accesses_encode(Accesses* accesses, Buffer* out) noexcept nogil:
    cdef size_t i
    cdef bint ok
    cdef AccountAccess** accounts = <AccountAccess**>PyMem_RawCalloc(
        accesses.accounts_kept + accesses.slots_kept + 1, sizeof(void*)
    )
    cdef SlotAccess** slots = <SlotAccess**>(accounts + accesses.accounts_kept)
    if accounts == NULL:
        return False
    for i in range(accesses.accounts_kept):
        accounts[i] = &accesses.accounts[i]
    for i in range(accesses.slots_kept):
        slots[i] = &accesses.slots[i]
    qsort(accounts, accesses.accounts_kept, sizeof(void*), compare_accounts)
    qsort(slots, accesses.slots_kept, sizeof(void*), compare_slots)
    ok = append_list(accesses, accounts, slots, out)
    PyMem_RawFree(accounts)
    return ok
