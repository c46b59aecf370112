"""The read set and write set of one optimistic execution (Block-STM), and its validation."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.primitives.arena cimport Arena, arena_alloc
from fastevm.core.primitives.hashes cimport Address, Hash, address_eq
from fastevm.core.primitives.intrinsics cimport atomic_publish_pointer, likely
from fastevm.core.primitives.word cimport (
    Word,
    word_add,
    word_copy,
    word_eq,
    word_is_zero,
    word_lt,
    word_sub,
    word_zero,
)
from fastevm.core.state.account cimport DIRTY_RESET, Account, Slot
from fastevm.core.state.code cimport code_retain
from fastevm.core.state.reader cimport (
    READ_FOUND,
    READ_MISSING,
    READ_RECORDED,
    AccountData,
    Reader,
    ReadStatus,
)
from fastevm.core.state.multi_version cimport (
    account_version,
    slot_version,
    mv_account,
    mv_slot,
)
from fastevm.core.state.world cimport (
    account_has_storage,
    world_begin,
    world_free,
    world_new,
)


cdef enum:
    FIRST_SLOTS = 64
    LONGEST_CHAIN = 64        # most uncommitted transactions of a sender that run optimistically


cdef bint speculation_new(Speculation* s) noexcept nogil:
    memset(s, 0, sizeof(Speculation))
    s.world = world_new()
    return s.world != NULL


cdef void speculation_free(Speculation* s) noexcept nogil:
    world_free(s.world)
    PyMem_RawFree(s.slots)
    memset(s, 0, sizeof(Speculation))


cdef void speculation_begin(
    Speculation* s, MultiVersionMemory* versions, Arena* arena, const Address* sender,
    uint64_t nonce, bint is_ahead
) noexcept nogil:
    cdef Reader reader
    memset(&reader, 0, sizeof(reader))
    reader.base = s
    reader.account = see_account
    reader.slot = see_slot
    reader.block_hash = see_block_hash
    reader.code = NULL
    s.versions = versions
    s.arena = arena
    s.sender = sender
    s.nonce = nonce
    s.is_ahead = is_ahead
    s.slot_count = 0
    world_begin(s.world, &reader)


# ----------------------------------------------------------------------------------------------
# reads

cdef bint expects_nonce(const Speculation* s, const AccountVersion* version) noexcept nogil:
    """Whether to assume that earlier transactions of the sender will raise its nonce."""
    return s.is_ahead and version.nonce < s.nonce and s.nonce - version.nonce <= LONGEST_CHAIN


cdef ReadStatus see_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    cdef Speculation* s = <Speculation*>base
    cdef AccountEntry* entry = mv_account(s.versions, s.arena, address)
    cdef SeenAccount* seen
    if entry == NULL:
        return READ_MISSING
    seen = <SeenAccount*>arena_alloc(s.world.arena, sizeof(SeenAccount))
    if seen == NULL:
        return READ_MISSING
    seen.entry = entry
    seen.version = account_version(entry)
    seen.nonce = seen.version.nonce
    if address_eq(address, s.sender) and expects_nonce(s, seen.version):
        seen.nonce = s.nonce
    word_copy(&out.balance, &seen.version.balance)
    out.nonce = seen.nonce
    out.code = seen.version.code
    out.code_hash = seen.version.code_hash
    out.has_storage = seen.version.has_storage
    out.storage = seen
    return READ_FOUND if seen.version.exists else READ_RECORDED


cdef inline void value_of(const SlotVersion* version, uint64_t epoch, Word* out) noexcept nogil:
    if likely(version.epoch == epoch):
        word_copy(out, &version.value)
    else:
        word_zero(out)


cdef ReadStatus see_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    cdef Speculation* s = <Speculation*>base
    cdef const SeenAccount* account = <const SeenAccount*>storage
    cdef SlotEntry* entry = mv_slot(s.versions, s.arena, account.entry, key)
    cdef SeenSlot* seen
    if entry == NULL or (s.slot_count == s.slot_capacity and not grow_slots(s)):
        return READ_MISSING
    seen = &s.slots[s.slot_count]
    s.slot_count += 1
    seen.entry = entry
    seen.version = slot_version(entry)
    seen.epoch = account.version.epoch
    value_of(seen.version, seen.epoch, out)
    return READ_FOUND


cdef bint grow_slots(Speculation* s) noexcept nogil:
    cdef size_t capacity = s.slot_capacity * 2 if s.slot_capacity else FIRST_SLOTS
    cdef void* moved = PyMem_RawRealloc(s.slots, capacity * sizeof(SeenSlot))
    if moved == NULL:
        return False
    s.slots = <SeenSlot*>moved
    s.slot_capacity = capacity
    return True


cdef ReadStatus see_block_hash(const void* base, uint64_t number, Hash* out) noexcept nogil:
    cdef const Reader* below = &(<Speculation*>base).versions.below.reader
    return below.block_hash(below.base, number, out)


# ----------------------------------------------------------------------------------------------
# validation

cdef inline bint is_wide(const Word* amount) noexcept nogil:
    return (amount.d[2] | amount.d[3]) != 0


cdef bint balance_may_differ(
    const Speculation* s, const Account* a, const AccountVersion* seen, const AccountVersion* now
) noexcept nogil:
    """Returns whether the transaction has the same effects with the new balance ``now``.

    True if the transaction only adds to the balance and subtracts amounts that ``now`` covers.
    """
    cdef Word missing
    if a.balance_seen or not a.exists:
        return False
    if is_wide(&seen.balance) or is_wide(&now.balance) or is_wide(&a.balance):
        return False
    if seen.nonce == 0 and seen.code == NULL:
        # Emptiness of the account depends on its balance.
        if word_is_zero(&seen.balance) or word_is_zero(&now.balance):
            return False
        if a.balance_taken and not address_eq(&a.address, s.sender):
            return False
    if not a.balance_taken or not word_lt(&now.balance, &seen.balance):
        return True
    word_sub(&missing, &seen.balance, &now.balance)
    return not word_lt(&a.lowest, &missing)


cdef bint account_holds(const Speculation* s, const Account* a) noexcept nogil:
    cdef const SeenAccount* seen = <const SeenAccount*>a.storage
    cdef const AccountVersion* then = seen.version
    cdef const AccountVersion* now = account_version(seen.entry)
    if seen.nonce != now.nonce:
        return False
    if now == then:
        return True
    if (
        now.code != then.code or now.exists != then.exists or now.epoch != then.epoch
        or now.has_storage != then.has_storage
    ):
        return False
    return word_eq(&now.balance, &then.balance) or balance_may_differ(s, a, then, now)


cdef bint speculation_holds(Speculation* s) noexcept nogil:
    cdef const SlotVersion* now
    cdef const SeenSlot* seen
    cdef Word before, after
    cdef size_t i
    for i in range(s.world.account_count):
        if not account_holds(s, s.world.account_list[i]):
            return False
    # The epochs are equal from here on.
    for i in range(s.slot_count):
        seen = &s.slots[i]
        now = slot_version(seen.entry)
        if now != seen.version:
            value_of(seen.version, seen.epoch, &before)
            value_of(now, seen.epoch, &after)
            if not word_eq(&before, &after):
                return False
    return True


# ----------------------------------------------------------------------------------------------
# publication of writes

cdef bint publish_account(Speculation* s, Arena* arena, const Account* a) noexcept nogil:
    """Publishes a new version of the account if it changed in more than its slots."""
    cdef const SeenAccount* seen = <const SeenAccount*>a.storage
    cdef AccountVersion* now = account_version(seen.entry)
    cdef AccountVersion* made
    cdef uint32_t epoch = now.epoch + (1 if a.storage_reset else 0)
    cdef bint has_storage = now.has_storage if not a.dirty else account_has_storage(a)
    if (
        a.nonce == now.nonce and a.code == now.code and a.exists == now.exists
        and epoch == now.epoch and has_storage == now.has_storage
        and word_eq(&a.balance, &seen.version.balance)
    ):
        return True
    made = <AccountVersion*>arena_alloc(arena, sizeof(AccountVersion))
    if made == NULL:
        return False
    word_sub(&made.balance, &a.balance, &seen.version.balance)
    word_add(&made.balance, &made.balance, &now.balance)
    made.nonce = a.nonce
    made.code = a.code
    made.code_hash = a.code_hash
    made.epoch = epoch
    made.exists = a.exists
    made.has_storage = has_storage
    if a.owns_code and a.code != NULL:
        code_retain(a.code)
        made.next_owner = s.versions.owners
        s.versions.owners = made
    atomic_publish_pointer(<void**>&seen.entry.current, made)
    return True


cdef bint publish_slot(
    Speculation* s, Arena* arena, AccountEntry* account, const Slot* slot
) noexcept nogil:
    cdef SlotEntry* entry = mv_slot(s.versions, arena, account, &slot.key)
    cdef SlotVersion* made
    cdef Word before
    cdef uint32_t epoch = account.current.epoch
    if entry == NULL:
        return False
    value_of(entry.current, epoch, &before)
    if word_eq(&before, &slot.current):
        return True
    made = <SlotVersion*>arena_alloc(arena, sizeof(SlotVersion))
    if made == NULL:
        return False
    word_copy(&made.value, &slot.current)
    made.epoch = epoch
    atomic_publish_pointer(<void**>&entry.current, made)
    return True


cdef bint speculation_publish(Speculation* s, Arena* arena) noexcept nogil:
    cdef Account* a
    cdef size_t i, j
    for i in range(s.world.account_count):
        a = s.world.account_list[i]
        if a.dirty == 0:
            continue
        if not publish_account(s, arena, a):
            return False
        if a.slot_mask == 0 or a.dirty & DIRTY_RESET:
            continue
        for j in range(<size_t>a.slot_mask + 1):
            if a.slots[j] != NULL and a.slots[j].dirty:
                if not publish_slot(s, arena, (<SeenAccount*>a.storage).entry, a.slots[j]):
                    return False
    return True
