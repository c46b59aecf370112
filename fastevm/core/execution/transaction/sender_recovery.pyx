"""Recovers the signers of a transaction and its authorizations (EIP-155, EIP-2, EIP-7702)."""
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from fastevm.core.execution.transaction.transaction_decoding cimport (
    HALF_ORDER, authorization_signing_hash, tx_signing_hash,
)
from fastevm.core.execution.transaction.transaction_data cimport (
    SENDER_BAD_VALUES, SENDER_KNOWN, SENDER_NO_KEY, SENDER_UNKNOWN, SENDER_WRITING, Authorization,
    SenderState, Tx,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport (
    atomic_claim_int, atomic_increment, atomic_load, atomic_load_int, atomic_observe_int,
    atomic_publish_int, atomic_store, atomic_store_int, load64_big,
)
from fastevm.core.crypto.secp256k1 cimport (
    RECOVERY_LANES, Recovery, recover_address, recover_eight, recovers_together,
)
from fastevm.core.primitives.word cimport Word, word_is_zero, word_lt, word_store


cdef extern from "<sched.h>" nogil:
    int sched_yield()


# The group order of secp256k1. Valid r and s are less.
cdef Word ORDER
ORDER.d[3] = 0xffffffffffffffff
ORDER.d[2] = 0xfffffffffffffffe
ORDER.d[1] = 0xbaaedce6af48a03b
ORDER.d[0] = 0xbfd25e8cd0364141


cdef inline bint in_range(const Word* r, const Word* s) noexcept nogil:
    return not word_is_zero(r) and not word_is_zero(s) and word_lt(r, &ORDER) and word_lt(s, &ORDER)


cdef inline bint signer_of(
    const Hash* digest, const Word* r, const Word* s, int y_parity, Address* out
) noexcept nogil:
    cdef uint8_t r_bytes[32]
    cdef uint8_t s_bytes[32]
    word_store(r_bytes, r)
    word_store(s_bytes, s)
    return recover_address(digest.b, r_bytes, s_bytes, y_parity, out)


cdef bint tx_recover(Tx* tx, Buffer* scratch) noexcept nogil:
    if not recover_authorities(tx, scratch):
        return False
    return sender_state_of(tx) != SENDER_UNKNOWN or recover_sender(tx, scratch)


cdef bint recover_authorities(Tx* tx, Buffer* scratch) noexcept nogil:
    cdef uint32_t i
    if not authorities_are_known(tx):
        for i in range(tx.authorization_count):
            if not recover_authority(&tx.authorizations[i], scratch):
                return False
        atomic_publish_int(<int*>&tx.authorities_known, True)
    return True


cdef inline bint may_have_sender(const Tx* tx) noexcept nogil:
    return tx.y_parity >= 0 and in_range(&tx.r, &tx.s)


cdef bint recover_sender(Tx* tx, Buffer* scratch) noexcept nogil:
    cdef Hash digest
    cdef Address sender
    cdef SenderState state = SENDER_BAD_VALUES
    if may_have_sender(tx):
        if not tx_signing_hash(tx, tx.has_chain_id, tx.chain_id, scratch, &digest):
            return False
        state = SENDER_NO_KEY
        if signer_of(&digest, &tx.r, &tx.s, tx.y_parity, &sender):
            state = SENDER_KNOWN
    keep_sender(tx, state, &sender)
    return True


# Stores the result of a recovery. If several threads recover the same signature, one thread stores
# the result and the other threads wait.
cdef void keep_sender(Tx* tx, SenderState state, const Address* sender) noexcept nogil:
    if atomic_claim_int(<int*>&tx.sender_state, SENDER_UNKNOWN, SENDER_WRITING):
        if state == SENDER_KNOWN:
            tx.sender = sender[0]
        atomic_publish_int(<int*>&tx.sender_state, state)
    while sender_state_of(tx) == SENDER_UNKNOWN:
        sched_yield()


cdef bint tx_recover_many(Tx** transactions, size_t count, Buffer* scratch) noexcept nogil:
    cdef Tx* group[RECOVERY_LANES]
    cdef size_t i, size = 0
    for i in range(count):
        if not recover_authorities(transactions[i], scratch):
            return False
        if sender_state_of(transactions[i]) == SENDER_UNKNOWN:
            group[size] = transactions[i]
            size += 1
        if size == RECOVERY_LANES or i + 1 == count:
            if not recover_group(group, size, scratch):
                return False
            size = 0
    return True


# Recovers up to RECOVERY_LANES unknown senders together.
cdef bint recover_group(Tx** group, size_t size, Buffer* scratch) noexcept nogil:
    cdef Recovery jobs[RECOVERY_LANES]
    cdef Address senders[RECOVERY_LANES]
    cdef size_t i
    if recovers_together(size):
        for i in range(size):
            if not fill_job(&jobs[i], group[i], scratch):
                return False
        for i in range(size, <size_t>RECOVERY_LANES):
            jobs[i] = jobs[0]
        recover_eight(jobs, senders)
        for i in range(size):
            if jobs[i].found and may_have_sender(group[i]):
                keep_sender(group[i], SENDER_KNOWN, &senders[i])
    for i in range(size):
        if sender_state_of(group[i]) == SENDER_UNKNOWN and not recover_sender(group[i], scratch):
            return False
    return True


# Fills a lane with a transaction's signature. Returns False if no sender is possible: then the lane
# has dummy values.
cdef bint fill_job(Recovery* job, const Tx* tx, Buffer* scratch) noexcept nogil:
    cdef Hash digest
    cdef int i
    memset(job, 0, sizeof(Recovery))
    job.r[0] = job.s[0] = 1
    if not may_have_sender(tx):
        return True
    if not tx_signing_hash(tx, tx.has_chain_id, tx.chain_id, scratch, &digest):
        return False
    for i in range(4):
        job.z[i] = load64_big(digest.b + 24 - 8 * i)
        job.r[i] = tx.r.d[i]
        job.s[i] = tx.s.d[i]
    job.y_parity = tx.y_parity
    return True


cdef enum:
    AUTHORITY_WRITING = -1    # value of `has_authority` while a thread stores the authority


# Recovers the signer of an authorization, whose signature must be low-s in every fork (EIP-7702).
# An authorization with an invalid signature has no authority and is skipped.
cdef bint recover_authority(Authorization* a, Buffer* scratch) noexcept nogil:
    cdef Hash digest
    cdef Address authority
    if a.y_parity > 1 or not in_range(&a.r, &a.s) or word_lt(&HALF_ORDER, &a.s):
        return True
    if not authorization_signing_hash(a, scratch, &digest):
        return False
    if not signer_of(&digest, &a.r, &a.s, a.y_parity, &authority):
        return True
    if atomic_claim_int(<int*>&a.has_authority, False, AUTHORITY_WRITING):
        a.authority = authority
        atomic_publish_int(<int*>&a.has_authority, True)
    while atomic_observe_int(<int*>&a.has_authority) == AUTHORITY_WRITING:
        sched_yield()
    return True


# ----------------------------------------------------------------------------------------------
# recovery on several threads

cdef int64_t batch_signatures(const SenderBatch* batch) noexcept nogil:
    cdef int64_t i, unknown = 0
    cdef const Tx* tx
    for i in range(batch.count):
        tx = batch.transactions[i]
        unknown += sender_state_of(tx) == SENDER_UNKNOWN
        if not authorities_are_known(tx):
            unknown += tx.authorization_count
    return unknown


cdef bint are_recovered(Tx** transactions, size_t count) noexcept nogil:
    cdef SenderBatch batch
    memset(&batch, 0, sizeof(SenderBatch))
    batch.transactions = transactions
    batch.count = <int64_t>count
    return batch_signatures(&batch) == 0


cdef bint recover_next_group(SenderBatch* batch, Buffer* scratch) noexcept nogil:
    """Recovers the next group. Returns False if threads have claimed all groups."""
    cdef int64_t first = (atomic_increment(&batch.taken) - 1) * SENDERS_AT_ONCE
    if first >= batch.count:
        return False
    if not tx_recover_many(
        batch.transactions + first,
        <size_t>min(batch.count - first, <int64_t>SENDERS_AT_ONCE),
        scratch,
    ):
        atomic_store_int(&batch.no_memory, True)
    atomic_increment(&batch.ended)
    return True


cdef void batch_recover(SenderBatch* batch) noexcept nogil:
    cdef Buffer scratch
    memset(&scratch, 0, sizeof(scratch))
    while recover_next_group(batch, &scratch):
        pass
    buffer_free(&scratch)


cdef bint batch_recover_until(SenderBatch* batch, Tx* tx, Buffer* scratch) noexcept nogil:
    cdef int64_t groups = (batch.count + SENDERS_AT_ONCE - 1) // SENDERS_AT_ONCE
    while not is_recovered(tx):
        if atomic_load(&batch.ended) == groups:
            return tx_recover(tx, scratch)
        if not recover_next_group(batch, scratch):
            sched_yield()
    return not atomic_load_int(&batch.no_memory)


cdef void batch_stop(SenderBatch* batch) noexcept nogil:
    atomic_store(&batch.taken, batch.count)
