"""A block access list as what transactions read before them, and what they must have done."""

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
    Claim,
    ClaimedAccount,
    ClaimedBase,
    ClaimedSlot,
    CodeClaim,
    claims_account,
    claims_before,
    claims_slot,
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
    status = view.claims.below.account(view.claims.below.base, &a.address, &made.data)
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
    cdef ClaimedAccount* a = claims_account(view.claims, address)
    cdef const ClaimedBase* before
    cdef uint32_t known, at
    cdef ReadStatus status
    if a == NULL:
        # Named by a transaction's own list alone, or not in the block's by mistake.
        status = view.claims.below.account(view.claims.below.base, address, out)
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


cdef ReadStatus claimed_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    cdef ClaimedView* view = <ClaimedView*>base
    cdef const ClaimedAccount* a = <const ClaimedAccount*>storage
    cdef ClaimedSlot* slot = claims_slot(view.claims, a, key) if a != NULL else NULL
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
    cdef const Reader* below = &(<const ClaimedView*>base).claims.below
    return below.block_hash(below.base, number, out)


cdef void claimed_reader(ClaimedView* view, Reader* out) noexcept nogil:
    out.base = view
    out.account = claimed_account
    out.slot = claimed_slot
    out.block_hash = claimed_block_hash
    out.code = NULL


# ----------------------------------------------------------------------------------------------
# what a run did, against the list

cdef inline size_t see(int* seen) noexcept nogil:
    """One for the run that is the first to have read an item, else none."""
    return not atomic_observe_int(seen) and atomic_claim_int(seen, False, True)


cdef bint confirms(
    const Claim* claims, uint32_t count, const ChangeLog* log, ClaimSums* confirmed
) noexcept nogil:
    cdef uint32_t i, at
    for i in range(log.count):
        at = claims_before(claims, count, log.items[i].index)
        if at == count or claims[at].index != log.items[i].index:
            return False
        if not word_eq(&claims[at].value, &log.items[i].value):
            return False
    confirmed.changes += log.count
    return True


cdef bint confirms_codes(
    const ClaimedAccount* a, const ChangeLog* log, ClaimSums* confirmed
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
    confirmed.changes += log.count
    return True


cdef bint confirms_account(
    const Claims* c, const AccountAccess* access, ClaimSums* confirmed
) noexcept nogil:
    cdef ClaimedAccount* a = claims_account(c, &access.account.address)
    if a == NULL:
        return False
    confirmed.items += see(&a.seen)
    return (
        confirms(a.balances, a.balance_count, &access.balance, confirmed)
        and confirms(a.nonces, a.nonce_count, &access.nonce, confirmed)
        and confirms_codes(a, &access.code, confirmed)
    )


cdef bint confirms_slot(
    const Claims* c, const SlotAccess* access, ClaimSums* confirmed
) noexcept nogil:
    cdef ClaimedAccount* a = claims_account(c, &access.account.address)
    cdef ClaimedSlot* slot = claims_slot(c, a, &access.slot.key) if a != NULL else NULL
    if slot == NULL:
        return False
    confirmed.items += see(&slot.seen)
    return confirms(slot.changes, slot.count, &access.value, confirmed)


cdef bint says_all(const Claims* c, const World* w) noexcept nogil:
    """Whether nothing happened that a list cannot say: slots that go, or an empty account."""
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


cdef bint claimed_confirm(const Claims* c, const World* w, ClaimSums* confirmed) noexcept nogil:
    cdef size_t i
    if not says_all(c, w):
        return False
    for i in range(w.accesses.accounts_kept):
        if not confirms_account(c, &w.accesses.accounts[i], confirmed):
            return False
    for i in range(w.accesses.slots_kept):
        if not confirms_slot(c, &w.accesses.slots[i], confirmed):
            return False
    return True
