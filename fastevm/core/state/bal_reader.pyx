"""Serves a transaction's reads from a block access list, then validates what it accessed."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memset

from fastevm.core.primitives.arena cimport arena_alloc
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport (
    atomic_claim_int,
    atomic_claim_pointer,
    atomic_observe_int,
    atomic_observe_pointer,
)
from fastevm.core.primitives.word cimport Word, word_copy, word_eq, word_is_zero, word_zero
from fastevm.core.state.account cimport Account
from fastevm.core.state.bal_decode cimport (
    BalAccount,
    BalChange,
    BalCodeChange,
    BalPreState,
    BalSlot,
    bal_account,
    bal_changes_before,
    bal_slot,
)
from fastevm.core.state.code cimport EMPTY_CODE_HASH
from fastevm.core.state.reader cimport (
    READ_FOUND,
    READ_MISSING,
    READ_RECORDED,
    AccountData,
    ReadStatus,
)
from fastevm.core.state.records cimport AccountAccess, ChangeLog, SlotAccess


# ----------------------------------------------------------------------------------------------
# what a transaction reads

cdef const BalPreState* base_of(BalView* view, BalAccount* a) noexcept nogil:
    """Returns the account before the block. NULL if memory is exhausted or state is missing."""
    cdef const BalPreState* found = <const BalPreState*>atomic_observe_pointer(<void**>&a.base)
    cdef BalPreState* made
    cdef ReadStatus status
    if found != NULL:
        return found
    made = <BalPreState*>arena_alloc(view.arena, sizeof(BalPreState))
    if made == NULL:
        return NULL
    memset(made, 0, sizeof(BalPreState))
    made.data.code_hash = EMPTY_CODE_HASH
    status = view.bal.below.account(view.bal.below.base, &a.address, &made.data)
    made.exists = status == READ_FOUND
    if status == READ_MISSING or (made.exists and is_empty(&made.data)):
        return NULL  # a list cannot express that an empty account is deleted
    if atomic_claim_pointer(<void**>&a.base, NULL, made):
        return made
    return <const BalPreState*>atomic_observe_pointer(<void**>&a.base)


cdef bint is_empty(const AccountData* data) noexcept nogil:
    return data.nonce == 0 and data.code == NULL and word_is_zero(&data.balance)


cdef ReadStatus account_at_index(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    cdef BalView* view = <BalView*>base
    cdef BalAccount* a = bal_account(view.bal, address)
    cdef const BalPreState* before
    cdef uint32_t known, at
    cdef ReadStatus status
    if a == NULL:
        # The account is only in the transaction's access list (EIP-2930), or the block's list is
        # wrong.
        status = view.bal.below.account(view.bal.below.base, address, out)
        out.storage = NULL
        return status
    before = base_of(view, a)
    if before == NULL:
        return READ_MISSING
    out[0] = before.data
    out.storage = a
    known = bal_changes_before(a.balances, a.balance_count, view.index)
    if known:
        word_copy(&out.balance, &a.balances[known - 1].value)
    known = bal_changes_before(a.nonces, a.nonce_count, view.index)
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
    const Bal* c, const BalAccount* a, const Address* address, const Word* key, Word* out
) noexcept nogil:
    """Reads a slot's value before the block. ``a``: its account, or NULL if the list has none."""
    cdef AccountData data
    memset(&data, 0, sizeof(data))
    cdef const AccountData* known = &data
    cdef ReadStatus status = READ_FOUND
    if a != NULL:
        known = &a.base.data
    else:
        status = c.below.account(c.below.base, address, &data)
    if status == READ_FOUND and known.has_storage:
        status = c.below.slot(c.below.base, known.storage, address, key, out)
        if status == READ_FOUND:
            return READ_FOUND
    word_zero(out)
    return READ_MISSING if status == READ_MISSING else READ_FOUND


cdef ReadStatus slot_at_index(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    cdef BalView* view = <BalView*>base
    cdef const BalAccount* a = <const BalAccount*>storage
    cdef BalSlot* slot = bal_slot(view.bal, a, key) if a != NULL else NULL
    cdef const Word* before
    cdef Word* made
    cdef uint32_t known
    if slot == NULL:
        return slot_below(view.bal, a, address, key, out)
    known = bal_changes_before(slot.changes, slot.count, view.index)
    if known:
        word_copy(out, &slot.changes[known - 1].value)
        return READ_FOUND
    before = <const Word*>atomic_observe_pointer(<void**>&slot.base)
    if before == NULL:
        made = <Word*>arena_alloc(view.arena, sizeof(Word))
        if made == NULL or slot_below(view.bal, a, address, key, made) == READ_MISSING:
            return READ_MISSING
        atomic_claim_pointer(<void**>&slot.base, NULL, made)
        before = made
    word_copy(out, before)
    return READ_FOUND


cdef ReadStatus block_hash_below(const void* base, uint64_t number, Hash* out) noexcept nogil:
    cdef const Reader* below = &(<const BalView*>base).bal.below
    return below.block_hash(below.base, number, out)


cdef void bal_reader(BalView* view, Reader* out) noexcept nogil:
    out.base = view
    out.account = account_at_index
    out.slot = slot_at_index
    out.block_hash = block_hash_below
    out.code = NULL


# ----------------------------------------------------------------------------------------------
# validation

cdef inline size_t see(int* seen) noexcept nogil:
    """Marks an item as accessed. Returns 1 if no execution has accessed it before, else 0."""
    return not atomic_observe_int(seen) and atomic_claim_int(seen, False, True)


cdef bint changes_match(
    const BalChange* changes, uint32_t count, const ChangeLog* log, BalTotals* validated
) noexcept nogil:
    cdef uint32_t i, at
    for i in range(log.count):
        at = bal_changes_before(changes, count, log.items[i].index)
        if at == count or changes[at].index != log.items[i].index:
            return False
        if not word_eq(&changes[at].value, &log.items[i].value):
            return False
    validated.changes += log.count
    return True


cdef bint codes_match(
    const BalAccount* a, const ChangeLog* log, BalTotals* validated
) noexcept nogil:
    cdef const BalCodeChange* change
    cdef uint32_t i, at
    for i in range(log.count):
        change = NULL
        for at in range(a.code_count):
            if a.codes[at].index == log.items[i].index:
                change = &a.codes[at]
        if change == NULL or log.items[i].size != (0 if change.code == NULL else change.code.size):
            return False
        if change.code != NULL and memcmp(
            change.code.bytes, log.items[i].code, change.code.size
        ) != 0:
            return False
    validated.changes += log.count
    return True


cdef bint account_matches(
    const Bal* c, const AccountAccess* access, BalTotals* validated
) noexcept nogil:
    cdef BalAccount* a = bal_account(c, &access.account.address)
    if a == NULL:
        return False
    validated.items += see(&a.seen)
    return (
        changes_match(a.balances, a.balance_count, &access.balance, validated)
        and changes_match(a.nonces, a.nonce_count, &access.nonce, validated)
        and codes_match(a, &access.code, validated)
    )


cdef bint slot_matches(
    const Bal* c, const SlotAccess* access, BalTotals* validated
) noexcept nogil:
    cdef BalAccount* a = bal_account(c, &access.account.address)
    cdef BalSlot* slot = bal_slot(c, a, &access.slot.key) if a != NULL else NULL
    if slot == NULL:
        return False
    validated.items += see(&slot.seen)
    return changes_match(slot.changes, slot.count, &access.value, validated)


cdef bint is_representable(const Bal* c, const World* w) noexcept nogil:
    """Whether an access list can express the changes of a world.

    It cannot express cleared storage and deleted empty accounts.
    """
    cdef AccountData before
    cdef const Account* a
    cdef size_t i
    for i in range(w.account_count):
        a = w.account_list[i]
        if a.storage_reset and a.base_has_storage:
            return False
        if a.dirty and not a.exists:
            memset(&before, 0, sizeof(before))
            if c.below.account(c.below.base, &a.address, &before) == READ_FOUND:
                if is_empty(&before):
                    return False
    return True


cdef bint bal_validate(const Bal* c, const World* w, BalTotals* validated) noexcept nogil:
    cdef size_t i
    if not is_representable(c, w):
        return False
    for i in range(w.accesses.accounts_kept):
        if not account_matches(c, &w.accesses.accounts[i], validated):
            return False
    for i in range(w.accesses.slots_kept):
        if not slot_matches(c, &w.accesses.slots[i], validated):
            return False
    return True
