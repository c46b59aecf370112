"""Decodes a block access list (EIP-7928). Threads may decode its accounts in parallel."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from fastevm.core.primitives.arena cimport Arena, arena_alloc
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.intrinsics cimport (
    atomic_claim_pointer,
    atomic_observe_pointer,
    process_seed,
)
from fastevm.core.primitives.rlp cimport (
    RlpCursor,
    RlpItem,
    rlp_count,
    rlp_done,
    rlp_enter,
    rlp_next,
    rlp_next_bytes,
    rlp_next_fixed,
    rlp_next_list,
    rlp_next_uint64,
    rlp_next_word,
    rlp_single,
)
from fastevm.core.primitives.table cimport hash_address, hash_word, table_capacity
from fastevm.core.primitives.word cimport Word, word_eq, word_lt
from fastevm.core.state.code cimport code_new, code_release


cdef enum:
    SMALLEST_PART = 27        # the fewest bytes of an account's RLP: address and five empty lists


cdef uint64_t HIGHEST_INDEX = 0xffffffff


# ----------------------------------------------------------------------------------------------
# reading the list

cdef void* room_for(
    Arena* arena, const RlpItem* items, size_t size, uint32_t* count
) noexcept nogil:
    """Returns empty records for the items of an RLP list.

    NULL if the item is not a list or memory is exhausted.
    """
    cdef int64_t found = rlp_count(items)
    cdef void* records
    if found < 0 or <uint64_t>found > HIGHEST_INDEX:
        return NULL
    count[0] = <uint32_t>found
    records = arena_alloc(arena, <size_t>found * size + 1)
    if records != NULL:
        memset(records, 0, <size_t>found * size)
    return records


cdef bint read_index(RlpCursor* cursor, int64_t* before, uint32_t* out) noexcept nogil:
    """Reads an index and sets ``before`` to it. Returns False if it is not above ``before``."""
    cdef uint64_t index = 0
    if not rlp_next_uint64(cursor, &index) or index > HIGHEST_INDEX:
        return False
    if <int64_t>index <= before[0]:
        return False
    before[0] = <int64_t>index
    out[0] = <uint32_t>index
    return True


cdef BalChange* read_changes(
    Arena* arena, const RlpItem* item, bint are_nonces, uint32_t* count
) noexcept nogil:
    cdef BalChange* changes = <BalChange*>room_for(arena, item, sizeof(BalChange), count)
    cdef RlpCursor cursor, one
    cdef int64_t before = -1
    cdef uint32_t i
    memset(&cursor, 0, sizeof(cursor))
    memset(&one, 0, sizeof(one))
    if changes == NULL or not rlp_enter(item, &cursor):
        return NULL
    for i in range(count[0]):
        if not rlp_next_list(&cursor, &one) or not read_index(&one, &before, &changes[i].index):
            return NULL
        if are_nonces:
            if not rlp_next_uint64(&one, &changes[i].value.d[0]):
                return NULL
        elif not rlp_next_word(&one, &changes[i].value):
            return NULL
        if not rlp_done(&one):
            return NULL
    return changes


cdef void own_codes(Bal* c, BalCodeList* codes) noexcept nogil:
    """Adds codes to the list that bal_free frees. Several threads may call it at the same time."""
    cdef void** bucket = <void**>&c.codes
    cdef void* newest
    while True:
        newest = atomic_observe_pointer(bucket)
        codes.next = <BalCodeList*>newest
        if atomic_claim_pointer(bucket, newest, codes):
            return


cdef bint read_codes(
    Bal* c, Arena* arena, const RlpItem* item, BalAccount* a
) noexcept nogil:
    cdef BalCodeList* owned
    cdef RlpCursor cursor, one
    cdef const uint8_t* data = NULL
    cdef size_t size = 0
    cdef int64_t before = -1
    cdef uint32_t i
    memset(&cursor, 0, sizeof(cursor))
    memset(&one, 0, sizeof(one))
    a.codes = <BalCodeChange*>room_for(arena, item, sizeof(BalCodeChange), &a.code_count)
    if a.codes == NULL or not rlp_enter(item, &cursor):
        return False
    if a.code_count == 0:
        return True
    owned = <BalCodeList*>arena_alloc(arena, sizeof(BalCodeList))
    if owned == NULL:
        return False
    owned.items = a.codes
    owned.count = a.code_count  # the codes are NULL so far
    own_codes(c, owned)
    for i in range(a.code_count):
        if not (
            rlp_next_list(&cursor, &one) and read_index(&one, &before, &a.codes[i].index)
            and rlp_next_bytes(&one, &data, &size) and rlp_done(&one)
        ):
            return False
        if size:
            a.codes[i].code = code_new(data, size, NULL, False)
            if a.codes[i].code == NULL:
                return False
    return True


cdef bint read_changed_slot(Arena* arena, RlpCursor* list, BalSlot* slot) noexcept nogil:
    cdef RlpCursor cursor
    cdef RlpItem item
    memset(&cursor, 0, sizeof(cursor))
    memset(&item, 0, sizeof(item))
    if not (
        rlp_next_list(list, &cursor) and rlp_next_word(&cursor, &slot.key)
        and rlp_next(&cursor, &item) and rlp_done(&cursor)
    ):
        return False
    slot.changes = read_changes(arena, &item, False, &slot.count)
    return slot.changes != NULL and slot.count != 0


cdef bint are_ascending(const BalSlot* slots, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(1, count):
        if not word_lt(&slots[i - 1].key, &slots[i].key):
            return False
    return True


cdef bint read_slots(Arena* arena, RlpCursor* fields, BalAccount* a) noexcept nogil:
    cdef RlpItem changed, read
    cdef RlpCursor cursor
    cdef int64_t changes, reads
    cdef uint32_t i
    memset(&changed, 0, sizeof(changed))
    memset(&read, 0, sizeof(read))
    memset(&cursor, 0, sizeof(cursor))
    if not (rlp_next(fields, &changed) and rlp_next(fields, &read)):
        return False
    changes = rlp_count(&changed)
    reads = rlp_count(&read)
    if changes < 0 or reads < 0 or <uint64_t>(changes + reads) > HIGHEST_INDEX:
        return False
    a.changed_slots = <uint32_t>changes
    a.slot_count = <uint32_t>(changes + reads)
    a.slots = <BalSlot*>arena_alloc(arena, a.slot_count * sizeof(BalSlot) + 1)
    if a.slots == NULL:
        return False
    memset(a.slots, 0, a.slot_count * sizeof(BalSlot))
    rlp_enter(&changed, &cursor)
    for i in range(a.changed_slots):
        if not read_changed_slot(arena, &cursor, &a.slots[i]):
            return False
        a.changes += a.slots[i].count
        if i == 0 or a.slots[i].changes[0].index < a.first_change:
            a.first_change = a.slots[i].changes[0].index
    rlp_enter(&read, &cursor)
    for i in range(a.changed_slots, a.slot_count):
        if not rlp_next_word(&cursor, &a.slots[i].key):
            return False
    return are_ascending(a.slots, a.changed_slots) and are_ascending(
        a.slots + a.changed_slots, a.slot_count - a.changed_slots
    )


cdef bint read_account(
    Bal* c, Arena* arena, const RlpItem* part, BalAccount* a
) noexcept nogil:
    cdef RlpCursor fields
    cdef RlpItem item
    memset(&fields, 0, sizeof(fields))
    memset(&item, 0, sizeof(item))
    if not (
        rlp_enter(part, &fields) and rlp_next_fixed(&fields, a.address.b, 20)
        and read_slots(arena, &fields, a) and rlp_next(&fields, &item)
    ):
        return False
    a.balances = read_changes(arena, &item, False, &a.balance_count)
    if a.balances == NULL or not rlp_next(&fields, &item):
        return False
    a.nonces = read_changes(arena, &item, True, &a.nonce_count)
    if a.nonces == NULL or not (
        rlp_next(&fields, &item) and read_codes(c, arena, &item, a) and rlp_done(&fields)
    ):
        return False
    a.changes += <int64_t>a.balance_count + <int64_t>a.nonce_count + <int64_t>a.code_count
    return index_slots(c, arena, a)


cdef bint bal_open(
    Bal* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil:
    cdef RlpItem list
    cdef RlpCursor cursor
    cdef size_t most = size // SMALLEST_PART + 1
    memset(&list, 0, sizeof(list))
    memset(&cursor, 0, sizeof(cursor))
    memset(c, 0, sizeof(Bal))
    c.seed = process_seed()
    if not rlp_single(encoded, size, &list) or not rlp_enter(&list, &cursor):
        return False
    c.parts = <RlpItem*>arena_alloc(arena, most * sizeof(RlpItem))
    if c.parts == NULL:
        return False
    while not rlp_done(&cursor):
        if c.account_count == most or not rlp_next(&cursor, &c.parts[c.account_count]):
            return False
        c.account_count += 1
    c.accounts = <BalAccount*>arena_alloc(arena, c.account_count * sizeof(BalAccount) + 1)
    c.mask = table_capacity(c.account_count) - 1
    c.table = <BalAccount**>arena_alloc(arena, (c.mask + 1) * sizeof(void*))
    if c.accounts == NULL or c.table == NULL:
        return False
    memset(c.table, 0, (c.mask + 1) * sizeof(void*))
    return True


cdef bint follows(const Bal* c, size_t at) noexcept nogil:
    """Whether the address of account ``at`` is greater than the previous account's address."""
    cdef RlpCursor fields
    cdef Address before
    memset(&fields, 0, sizeof(fields))
    if at == 0:
        return True
    if not rlp_enter(&c.parts[at - 1], &fields) or not rlp_next_fixed(&fields, before.b, 20):
        return False
    return memcmp(before.b, c.accounts[at].address.b, 20) < 0


cdef bint bal_read_part(Bal* c, Arena* arena, size_t at, BalTotals* sums) noexcept nogil:
    cdef BalAccount* a = &c.accounts[at]
    memset(a, 0, sizeof(BalAccount))
    if not read_account(c, arena, &c.parts[at], a) or not follows(c, at):
        return False
    sums.items += 1 + <size_t>a.slot_count
    sums.changes += a.changes
    index_account(c, a)
    return True


cdef bint bal_read(
    Bal* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil:
    cdef size_t i
    if not bal_open(c, arena, encoded, size):
        return False
    for i in range(c.account_count):
        if not bal_read_part(c, arena, i, &c.sums):
            return False
    return True


cdef void bal_free(Bal* c) noexcept nogil:
    cdef const BalCodeList* codes = c.codes
    cdef uint32_t i
    while codes != NULL:
        for i in range(codes.count):
            code_release(codes.items[i].code)
        codes = codes.next
    memset(c, 0, sizeof(Bal))


# ----------------------------------------------------------------------------------------------
# finding accounts and slots

cdef uint32_t* slot_bucket(
    const Bal* c, const BalAccount* a, const Word* key
) noexcept nogil:
    """Returns the slot's entry in the account's table, or the free entry where it belongs."""
    cdef size_t at = hash_word(key, c.seed) & a.mask
    while a.table[at] and not word_eq(&a.slots[a.table[at] - 1].key, key):
        at = (at + 1) & a.mask
    return &a.table[at]


cdef bint index_slots(Bal* c, Arena* arena, BalAccount* a) noexcept nogil:
    """Fills the account's table of slots.

    Returns False if memory is exhausted, or if the list has a slot both as changed and as read.
    """
    cdef size_t capacity
    cdef uint32_t* bucket
    cdef uint32_t i
    if a.slot_count == 0:
        return True
    capacity = table_capacity(a.slot_count)
    a.mask = <uint32_t>(capacity - 1)
    a.table = <uint32_t*>arena_alloc(arena, capacity * sizeof(uint32_t))
    if a.table == NULL:
        return False
    memset(a.table, 0, capacity * sizeof(uint32_t))
    for i in range(a.slot_count):
        bucket = slot_bucket(c, a, &a.slots[i].key)
        if bucket[0]:
            return False
        bucket[0] = i + 1
    return True


cdef void index_account(Bal* c, BalAccount* a) noexcept nogil:
    """Adds an account to the table. Several threads may call it at the same time."""
    cdef size_t at = hash_address(&a.address, c.seed) & c.mask
    while not atomic_claim_pointer(<void**>&c.table[at], NULL, a):
        at = (at + 1) & c.mask


cdef BalAccount* bal_account(const Bal* c, const Address* address) noexcept nogil:
    cdef size_t at = hash_address(address, c.seed) & c.mask
    while c.table[at] != NULL and not address_eq(&c.table[at].address, address):
        at = (at + 1) & c.mask
    return c.table[at]


cdef BalSlot* bal_slot(
    const Bal* c, const BalAccount* a, const Word* key
) noexcept nogil:
    cdef uint32_t bucket
    if a.slot_count == 0:
        return NULL
    bucket = slot_bucket(c, a, key)[0]
    return &a.slots[bucket - 1] if bucket else NULL


cdef uint32_t bal_changes_before(
    const BalChange* changes, uint32_t count, uint32_t index
) noexcept nogil:
    cdef uint32_t low = 0, high = count, middle
    while low < high:
        middle = (low + high) // 2
        if changes[middle].index < index:
            low = middle + 1
        else:
            high = middle
    return low
