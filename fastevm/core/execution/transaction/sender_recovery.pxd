# Recovers the signers of a transaction and its authorizations (EIP-155, EIP-2, EIP-7702).
from libc.stdint cimport int64_t

from fastevm.core.execution.transaction.transaction_data cimport (
    SENDER_UNKNOWN, SENDER_WRITING, Authorization, SenderState, Tx,
)
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.intrinsics cimport atomic_observe_int


# The state of the sender, which another thread may be recovering at the same time.
cdef inline SenderState sender_state_of(const Tx* tx) noexcept nogil:
    cdef SenderState state = <SenderState>atomic_observe_int(<const int*>&tx.sender_state)
    return SENDER_UNKNOWN if state == SENDER_WRITING else state


cdef inline bint authorities_are_known(const Tx* tx) noexcept nogil:
    return atomic_observe_int(<const int*>&tx.authorities_known)


# Returns whether the signature of an authorization is valid. Call it if `authorities_are_known` is
# True for the transaction. Safe while another thread stores the same authority.
cdef inline bint authority_is_valid(const Authorization* a) noexcept nogil:
    # -1 while a thread stores the authority
    return atomic_observe_int(<const int*>&a.has_authority) > 0


# Recover sender and authorities unless they are known. Returns False if memory is exhausted.
cdef bint tx_recover(Tx* tx, Buffer* scratch) noexcept nogil
# Recover the senders and authorities of many transactions. Four times as fast with AVX-512 IFMA.
cdef bint tx_recover_many(Tx** transactions, size_t count, Buffer* scratch) noexcept nogil


# Transactions whose signers several threads recover in groups, starting with the first transaction.
cdef struct SenderBatch:
    Tx** transactions
    int64_t count
    int64_t taken             # number of groups that threads have claimed; atomic
    int64_t ended             # number of groups whose signers are known; atomic
    int no_memory             # whether memory was exhausted; atomic


cdef enum:
    SENDERS_AT_ONCE = 8       # transactions in a group


cdef inline bint is_recovered(const Tx* tx) noexcept nogil:
    return sender_state_of(tx) != SENDER_UNKNOWN and authorities_are_known(tx)


# Returns the number of signatures that are not recovered yet.
cdef int64_t batch_signatures(const SenderBatch* batch) noexcept nogil
# Recover groups until threads have claimed all of them.
cdef void batch_recover(SenderBatch* batch) noexcept nogil
# Wait until the signers of this transaction are known; recover other groups until then. Returns
# False if memory is exhausted.
cdef bint batch_recover_until(SenderBatch* batch, Tx* tx, Buffer* scratch) noexcept nogil
# Mark all remaining groups as claimed, without recovering them.
cdef void batch_stop(SenderBatch* batch) noexcept nogil
# Returns whether all senders and authorities are known.
cdef bint are_recovered(Tx** transactions, size_t count) noexcept nogil
