"""A block access list as what transactions read before them, and what they must have done."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memset

from fastevm.primitives.arena cimport Arena, arena_alloc, arena_free, arena_new
from fastevm.primitives.hashes cimport Address, Hash, address_eq
from fastevm.primitives.intrinsics cimport (
    atomic_claim_pointer,
    atomic_observe_int,
    atomic_observe_pointer,
    atomic_publish_int,
    process_seed,
)
from fastevm.primitives.rlp cimport (
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
from fastevm.primitives.table cimport hash_address, hash_word, table_capacity
from fastevm.primitives.word cimport (
    Word,
    word_copy,
    word_eq,
    word_is_zero,
    word_lt,
    word_zero,
)
from fastevm.state.account cimport DIRTY_FIELDS, Account
from fastevm.state.code cimport EMPTY_CODE_HASH, Code, code_new, code_release, code_retain
from fastevm.state.reader cimport (
    READ_FOUND,
    READ_MISSING,
    READ_RECORDED,
    AccountData,
    Reader,
    ReadStatus,
)
from fastevm.state.records cimport AccountAccess, ChangeLog, SlotAccess, World
from fastevm.state.world cimport (
    account_is_empty,
    world_adopt_slot,
    world_find_account,
    world_new_account,
    world_peek_account,
    world_peek_slot,
)


cdef enum:
    ARENA_CHUNK = 256 * 1024


cdef uint64_t HIGHEST_INDEX = 0xffffffff


# ----------------------------------------------------------------------------------------------
# reading the list

cdef void* room_for(
    Arena* arena, const RlpItem* items, size_t size, uint32_t* count
) noexcept nogil:
    """Empty records for the items of a list; NULL: it is none, or there is no memory."""
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
    """An index, which is larger than the one before."""
    cdef uint64_t index = 0
    if not rlp_next_uint64(cursor, &index) or index > HIGHEST_INDEX:
        return False
    if <int64_t>index <= before[0]:
        return False
    before[0] = <int64_t>index
    out[0] = <uint32_t>index
    return True


cdef Claim* read_claims(
    Arena* arena, const RlpItem* item, bint are_nonces, uint32_t* count
) noexcept nogil:
    cdef Claim* claims = <Claim*>room_for(arena, item, sizeof(Claim), count)
    cdef RlpCursor cursor, one
    cdef int64_t before = -1
    cdef uint32_t i
    if claims == NULL or not rlp_enter(item, &cursor):
        return NULL
    for i in range(count[0]):
        if not rlp_next_list(&cursor, &one) or not read_index(&one, &before, &claims[i].index):
            return NULL
        if are_nonces:
            if not rlp_next_uint64(&one, &claims[i].value.d[0]):
                return NULL
        elif not rlp_next_word(&one, &claims[i].value):
            return NULL
        if not rlp_done(&one):
            return NULL
    return claims


cdef bint read_codes(Arena* arena, const RlpItem* item, ClaimedAccount* a) noexcept nogil:
    cdef CodeClaim* codes
    cdef RlpCursor cursor, one
    cdef const uint8_t* data = NULL
    cdef size_t size = 0
    cdef int64_t before = -1
    cdef uint32_t i, count = 0
    codes = <CodeClaim*>room_for(arena, item, sizeof(CodeClaim), &count)
    if codes == NULL or not rlp_enter(item, &cursor):
        return False
    a.codes = codes
    a.code_count = count  # all of them are NULL so far
    for i in range(count):
        if not (
            rlp_next_list(&cursor, &one) and read_index(&one, &before, &codes[i].index)
            and rlp_next_bytes(&one, &data, &size) and rlp_done(&one)
        ):
            return False
        if size:
            codes[i].code = code_new(data, size, NULL, False)
            if codes[i].code == NULL:
                return False
    return True


cdef bint read_changed_slot(Arena* arena, RlpCursor* list, ClaimedSlot* slot) noexcept nogil:
    cdef RlpCursor cursor
    cdef RlpItem item
    if not (
        rlp_next_list(list, &cursor) and rlp_next_word(&cursor, &slot.key)
        and rlp_next(&cursor, &item) and rlp_done(&cursor)
    ):
        return False
    slot.changes = read_claims(arena, &item, False, &slot.count)
    return slot.changes != NULL and slot.count != 0


cdef bint are_ascending(const ClaimedSlot* slots, uint32_t count) noexcept nogil:
    cdef uint32_t i
    for i in range(1, count):
        if not word_lt(&slots[i - 1].key, &slots[i].key):
            return False
    return True


cdef bint read_slots(Arena* arena, RlpCursor* fields, ClaimedAccount* a) noexcept nogil:
    cdef RlpItem changed, read
    cdef RlpCursor cursor
    cdef int64_t changes, reads
    cdef uint32_t i
    if not (rlp_next(fields, &changed) and rlp_next(fields, &read)):
        return False
    changes = rlp_count(&changed)
    reads = rlp_count(&read)
    if changes < 0 or reads < 0 or <uint64_t>(changes + reads) > HIGHEST_INDEX:
        return False
    a.changed_slots = <uint32_t>changes
    a.slot_count = <uint32_t>(changes + reads)
    a.slots = <ClaimedSlot*>arena_alloc(arena, a.slot_count * sizeof(ClaimedSlot) + 1)
    if a.slots == NULL:
        return False
    memset(a.slots, 0, a.slot_count * sizeof(ClaimedSlot))
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


cdef bint read_account(Arena* arena, const RlpItem* part, ClaimedAccount* a) noexcept nogil:
    cdef RlpCursor fields
    cdef RlpItem item
    if not (
        rlp_enter(part, &fields) and rlp_next_fixed(&fields, a.address.b, 20)
        and read_slots(arena, &fields, a) and rlp_next(&fields, &item)
    ):
        return False
    a.balances = read_claims(arena, &item, False, &a.balance_count)
    if a.balances == NULL or not rlp_next(&fields, &item):
        return False
    a.nonces = read_claims(arena, &item, True, &a.nonce_count)
    if a.nonces == NULL or not (
        rlp_next(&fields, &item) and read_codes(arena, &item, a) and rlp_done(&fields)
    ):
        return False
    a.changes += <int64_t>a.balance_count + <int64_t>a.nonce_count + <int64_t>a.code_count
    return True


cdef bint claims_open(Claims* c, const uint8_t* encoded, size_t size) noexcept nogil:
    cdef RlpItem list
    cdef RlpCursor cursor
    cdef uint32_t i, count = 0
    memset(c, 0, sizeof(Claims))
    c.seed = process_seed()
    c.arena = arena_new(ARENA_CHUNK)
    if c.arena == NULL or not rlp_single(encoded, size, &list):
        return False
    c.accounts = <ClaimedAccount*>room_for(c.arena, &list, sizeof(ClaimedAccount), &count)
    c.parts = <RlpItem*>arena_alloc(c.arena, count * sizeof(RlpItem) + 1)
    if c.accounts == NULL or c.parts == NULL or not rlp_enter(&list, &cursor):
        return False
    c.account_count = count
    for i in range(count):
        if not rlp_next(&cursor, &c.parts[i]):
            return False
    return True


cdef bint claims_read_part(Claims* c, Arena* arena, size_t at) noexcept nogil:
    return read_account(arena, &c.parts[at], &c.accounts[at])


cdef bint claims_close(Claims* c) noexcept nogil:
    cdef size_t i
    c.items = c.account_count
    for i in range(c.account_count):
        if i and memcmp(c.accounts[i - 1].address.b, c.accounts[i].address.b, 20) >= 0:
            return False
        c.items += c.accounts[i].slot_count
        c.changes += c.accounts[i].changes
    return index_all(c)


# ----------------------------------------------------------------------------------------------
# finding accounts and slots

cdef SlotPlace* slot_place(
    const Claims* c, const ClaimedAccount* a, const Word* key
) noexcept nogil:
    """Where the slot is, or an empty place."""
    cdef size_t at = hash_word(key, c.seed ^ <uint64_t>a) & c.slot_mask
    while c.slot_table[at].slot != NULL and not (
        c.slot_table[at].account == a and word_eq(&c.slot_table[at].slot.key, key)
    ):
        at = (at + 1) & c.slot_mask
    return &c.slot_table[at]


cdef ClaimedAccount** account_place(const Claims* c, const Address* address) noexcept nogil:
    cdef size_t at = hash_address(address, c.seed) & c.account_mask
    while c.account_table[at] != NULL and not address_eq(&c.account_table[at].address, address):
        at = (at + 1) & c.account_mask
    return &c.account_table[at]


cdef bint index_all(Claims* c) noexcept nogil:
    """Fill the tables; False: no memory, or a slot is both changed and read."""
    cdef size_t i
    cdef uint32_t j
    cdef ClaimedAccount* a
    cdef SlotPlace* place
    c.account_mask = table_capacity(c.account_count) - 1
    c.slot_mask = table_capacity(c.items - c.account_count) - 1
    c.account_table = <ClaimedAccount**>PyMem_RawCalloc(c.account_mask + 1, sizeof(void*))
    c.slot_table = <SlotPlace*>PyMem_RawCalloc(c.slot_mask + 1, sizeof(SlotPlace))
    if c.account_table == NULL or c.slot_table == NULL:
        return False
    for i in range(c.account_count):
        a = &c.accounts[i]
        account_place(c, &a.address)[0] = a
        for j in range(a.slot_count):
            place = slot_place(c, a, &a.slots[j].key)
            if place.slot != NULL:
                return False
            place.account = a
            place.slot = &a.slots[j]
    return True


cdef bint claims_read(Claims* c, const uint8_t* encoded, size_t size) noexcept nogil:
    cdef size_t i
    if not claims_open(c, encoded, size):
        return False
    for i in range(c.account_count):
        if not claims_read_part(c, c.arena, i):
            return False
    return claims_close(c)


cdef void claims_free(Claims* c) noexcept nogil:
    cdef size_t i
    cdef uint32_t j
    if c.accounts != NULL:
        for i in range(c.account_count):
            for j in range(c.accounts[i].code_count):
                code_release(c.accounts[i].codes[j].code)
    PyMem_RawFree(c.account_table)
    PyMem_RawFree(c.slot_table)
    if c.arena != NULL:
        arena_free(c.arena)
    memset(c, 0, sizeof(Claims))


# ----------------------------------------------------------------------------------------------
# what a transaction reads

cdef uint32_t claims_before(const Claim* claims, uint32_t count, uint32_t index) noexcept nogil:
    """How many are of earlier indices."""
    cdef uint32_t low = 0, high = count, middle
    while low < high:
        middle = (low + high) // 2
        if claims[middle].index < index:
            low = middle + 1
        else:
            high = middle
    return low


cdef const ClaimedBase* base_of(ClaimedView* view, ClaimedAccount* a) noexcept nogil:
    """The account before the block; NULL: no memory, or not known."""
    cdef const ClaimedBase* found = <const ClaimedBase*>atomic_observe_pointer(<void**>&a.base)
    cdef ClaimedBase* made
    cdef ReadStatus status
    if found != NULL:
        return found
    made = <ClaimedBase*>arena_alloc(view.arena, sizeof(ClaimedBase))
    if made == NULL:
        return NULL
    memset(made, 0, sizeof(ClaimedBase))
    made.data.code_hash = EMPTY_CODE_HASH
    status = world_peek_account(view.claims.below, &a.address, &made.data)
    made.exists = status == READ_FOUND
    if status == READ_MISSING or (made.exists and is_empty(&made.data)):
        return NULL  # the list cannot say that an empty account goes
    if atomic_claim_pointer(<void**>&a.base, NULL, made):
        return made
    return <const ClaimedBase*>atomic_observe_pointer(<void**>&a.base)


cdef bint is_empty(const AccountData* data) noexcept nogil:
    return data.nonce == 0 and data.code == NULL and word_is_zero(&data.balance)


cdef ReadStatus claimed_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    cdef ClaimedView* view = <ClaimedView*>base
    cdef ClaimedAccount* a = account_place(view.claims, address)[0]
    cdef const ClaimedBase* before
    cdef uint32_t known, at
    cdef ReadStatus status
    if a == NULL:
        # Named by a transaction's own list alone, or not in the block's by mistake.
        status = world_peek_account(view.claims.below, address, out)
        out.storage = NULL
        return status
    before = base_of(view, a)
    if before == NULL:
        return READ_MISSING
    out[0] = before.data
    out.storage = a
    known = claims_before(a.balances, a.balance_count, view.index)
    if known:
        word_copy(&out.balance, &a.balances[known - 1].value)
    known = claims_before(a.nonces, a.nonce_count, view.index)
    if known:
        out.nonce = a.nonces[known - 1].value.d[0]
    for at in range(a.code_count):
        if a.codes[at].index < view.index:
            out.code = a.codes[at].code
            out.code_hash = EMPTY_CODE_HASH if out.code == NULL else out.code.hash
    if a.changed_slots and a.first_change < view.index:
        out.has_storage = True
    return READ_RECORDED if is_empty(out) else READ_FOUND


cdef ReadStatus slot_below(
    const Claims* c, const ClaimedAccount* a, const Address* address, const Word* key, Word* out
) noexcept nogil:
    """Before the block; `a`: NULL, or the account with its base."""
    cdef AccountData data
    cdef const AccountData* known = &data
    cdef ReadStatus status
    if a != NULL:
        known = &a.base.data
    else:
        status = world_peek_account(c.below, address, &data)
        if status != READ_FOUND:
            word_zero(out)
            return status
    return world_peek_slot(c.below, known, address, key, out)


cdef ReadStatus claimed_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    cdef ClaimedView* view = <ClaimedView*>base
    cdef const ClaimedAccount* a = <const ClaimedAccount*>storage
    cdef ClaimedSlot* slot = slot_place(view.claims, a, key).slot if a != NULL else NULL
    cdef const Word* before
    cdef Word* made
    cdef uint32_t known
    if slot == NULL:
        return slot_below(view.claims, a, address, key, out)
    known = claims_before(slot.changes, slot.count, view.index)
    if known:
        word_copy(out, &slot.changes[known - 1].value)
        return READ_FOUND
    before = <const Word*>atomic_observe_pointer(<void**>&slot.base)
    if before == NULL:
        made = <Word*>arena_alloc(view.arena, sizeof(Word))
        if made == NULL or slot_below(view.claims, a, address, key, made) == READ_MISSING:
            return READ_MISSING
        atomic_claim_pointer(<void**>&slot.base, NULL, made)
        before = made
    word_copy(out, before)
    return READ_FOUND


cdef ReadStatus claimed_block_hash(const void* base, uint64_t number, Hash* out) noexcept nogil:
    cdef const Reader* below = &(<const ClaimedView*>base).claims.below.reader
    return below.block_hash(below.base, number, out)


cdef void claims_reader(ClaimedView* view, Reader* out) noexcept nogil:
    out.base = view
    out.account = claimed_account
    out.slot = claimed_slot
    out.block_hash = claimed_block_hash
    out.code = NULL


# ----------------------------------------------------------------------------------------------
# what a run did, against the list

cdef inline void see(int* seen) noexcept nogil:
    if not atomic_observe_int(seen):
        atomic_publish_int(seen, True)


cdef bint confirms(
    const Claim* claims, uint32_t count, const ChangeLog* log, int64_t* confirmed
) noexcept nogil:
    cdef uint32_t i, at
    for i in range(log.count):
        at = claims_before(claims, count, log.items[i].index)
        if at == count or claims[at].index != log.items[i].index:
            return False
        if not word_eq(&claims[at].value, &log.items[i].value):
            return False
    confirmed[0] += log.count
    return True


cdef bint confirms_codes(
    const ClaimedAccount* a, const ChangeLog* log, int64_t* confirmed
) noexcept nogil:
    cdef const CodeClaim* claim
    cdef uint32_t i, at
    for i in range(log.count):
        claim = NULL
        for at in range(a.code_count):
            if a.codes[at].index == log.items[i].index:
                claim = &a.codes[at]
        if claim == NULL or log.items[i].size != (0 if claim.code == NULL else claim.code.size):
            return False
        if claim.code != NULL and memcmp(claim.code.bytes, log.items[i].code, claim.code.size) != 0:
            return False
    confirmed[0] += log.count
    return True


cdef bint confirms_account(
    const Claims* c, const AccountAccess* access, int64_t* confirmed
) noexcept nogil:
    cdef ClaimedAccount* a = account_place(c, &access.account.address)[0]
    if a == NULL:
        return False
    see(&a.seen)
    return (
        confirms(a.balances, a.balance_count, &access.balance, confirmed)
        and confirms(a.nonces, a.nonce_count, &access.nonce, confirmed)
        and confirms_codes(a, &access.code, confirmed)
    )


cdef bint confirms_slot(
    const Claims* c, const SlotAccess* access, int64_t* confirmed
) noexcept nogil:
    cdef ClaimedAccount* a = account_place(c, &access.account.address)[0]
    cdef ClaimedSlot* slot = slot_place(c, a, &access.slot.key).slot if a != NULL else NULL
    if slot == NULL:
        return False
    see(&slot.seen)
    return confirms(slot.changes, slot.count, &access.value, confirmed)


cdef int64_t claims_confirm(const Claims* c, World* w) noexcept nogil:
    cdef int64_t confirmed = 0
    cdef const Account* a
    cdef size_t i
    for i in range(w.account_count):
        a = w.account_list[i]
        if a.storage_reset and a.base_has_storage:
            return -1  # slots went that the list does not name
    for i in range(w.accesses.accounts_kept):
        if not confirms_account(c, &w.accesses.accounts[i], &confirmed):
            return -1
    for i in range(w.accesses.slots_kept):
        if not confirms_slot(c, &w.accesses.slots[i], &confirmed):
            return -1
    return confirmed


cdef bint claims_complete(const Claims* c, int64_t confirmed) noexcept nogil:
    cdef size_t i
    cdef uint32_t j
    if confirmed != c.changes:
        return False
    for i in range(c.account_count):
        if not atomic_observe_int(&c.accounts[i].seen):
            return False
        for j in range(c.accounts[i].slot_count):
            if not atomic_observe_int(&c.accounts[i].slots[j].seen):
                return False
    return True


# ----------------------------------------------------------------------------------------------
# the end

cdef Account* account_below(Claims* c, ClaimedAccount* claimed) noexcept nogil:
    """The record of the world, made if it has none; NULL: out of memory, or not known."""
    cdef World* w = c.below
    cdef ClaimedView view
    cdef const ClaimedBase* base
    cdef Account* a = world_find_account(w, &claimed.address)
    if a != NULL:
        return a
    view.claims = c
    view.arena = c.arena
    base = base_of(&view, claimed)
    if base != NULL:
        a = world_new_account(w, &claimed.address)
    if a == NULL:
        return NULL
    word_copy(&a.balance, &base.data.balance)
    a.nonce = base.data.nonce
    a.code = base.data.code
    a.code_hash = base.data.code_hash
    a.exists = base.exists
    a.base_has_storage = base.data.has_storage
    a.storage = base.data.storage
    return a


cdef void apply_code(Account* a, Code* code) noexcept nogil:
    if a.owns_code:
        code_release(a.code)
    a.code = code
    a.code_hash = EMPTY_CODE_HASH if code == NULL else code.hash
    a.owns_code = code != NULL
    code_retain(code)


cdef bint apply_account(Claims* c, ClaimedAccount* claimed, uint32_t end) noexcept nogil:
    """The changes of indices before `end`."""
    cdef uint32_t balances = claims_before(claimed.balances, claimed.balance_count, end)
    cdef uint32_t nonces = claims_before(claimed.nonces, claimed.nonce_count, end)
    cdef uint32_t codes = claimed.code_count, i, known
    cdef bint has_slots = claimed.changed_slots != 0 and claimed.first_change < end
    cdef Account* a
    while codes and claimed.codes[codes - 1].index >= end:
        codes -= 1
    if not (balances or nonces or codes or has_slots):
        return True
    a = account_below(c, claimed)
    if a == NULL:
        return False
    if balances:
        word_copy(&a.balance, &claimed.balances[balances - 1].value)
    if nonces:
        a.nonce = claimed.nonces[nonces - 1].value.d[0]
    if codes:
        apply_code(a, claimed.codes[codes - 1].code)
    if balances or nonces or codes:
        a.exists = not account_is_empty(a)
        a.dirty |= DIRTY_FIELDS
    for i in range(claimed.changed_slots):
        known = claims_before(claimed.slots[i].changes, claimed.slots[i].count, end)
        if known and not world_adopt_slot(
            c.below, a, &claimed.slots[i].key, &claimed.slots[i].changes[known - 1].value
        ):
            return False
    return True


cdef bint claims_apply(Claims* c, uint32_t last) noexcept nogil:
    cdef size_t i
    for i in range(c.account_count):
        if not apply_account(c, &c.accounts[i], last + 1):
            return False
    return True
