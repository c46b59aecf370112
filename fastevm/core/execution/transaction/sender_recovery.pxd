# Recovers the signers of a transaction and its authorizations (EIP-155, EIP-2, EIP-7702).
from libc.stdint cimport int64_t

from fastevm.core.execution.transaction.transaction_data cimport (
    SENDER_UNKNOWN, SENDER_WRITING, Authorization, SenderState, Tx,
)
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.intrinsics cimport atomic_observe_int


# The state of the sender; another thread may be recovering it at the same time.
cdef inline SenderState sender_state_of(const Tx* tx) noexcept nogil:
    cdef SenderState state = <SenderState>atomic_observe_int(<const int*>&tx.sender_state)
    return SENDER_UNKNOWN if state == SENDER_WRITING else state


cdef inline bint authorities_are_known(const Tx* tx) noexcept nogil:
    return atomic_observe_int(<const int*>&tx.authorities_known)


# Whether an authorization has an authority; `authorities_are_known` of its transaction. Another
# thread that recovers the same may still try to store it.
cdef inline bint authority_is_valid(const Authorization* a) noexcept nogil:
    return atomic_observe_int(<const int*>&a.has_authority) > 0  # not being stored


# Fill in sender_state, sender and the authorities, unless they are known. False: out of memory.
cdef bint tx_recover(Tx* tx, Buffer* scratch) noexcept nogil
# The same for many; with AVX-512 IFMA in a quarter of the time.
cdef bint tx_recover_many(Tx** transactions, size_t count, Buffer* scratch) noexcept nogil


# Transactions whose signers several threads recover, a group at a time from the first on.
cdef struct SenderBatch:
    Tx** transactions
    int64_t count
    int64_t taken             # groups that threads took: atomic, as all below
    int64_t ended             # groups whose signers are known
    int no_memory


cdef enum:
    SENDERS_AT_ONCE = 8       # of a group


cdef inline bint is_recovered(const Tx* tx) noexcept nogil:
    return sender_state_of(tx) != SENDER_UNKNOWN and authorities_are_known(tx)


# How many signatures nobody has recovered.
cdef int64_t batch_signatures(const SenderBatch* batch) noexcept nogil
# Recover groups until none is left that nobody took.
cdef void batch_recover(SenderBatch* batch) noexcept nogil
# Until the signers of this transaction of the batch are known; recovers groups meanwhile. False:
# out of memory.
cdef bint batch_recover_until(SenderBatch* batch, Tx* tx, Buffer* scratch) noexcept nogil
# Leave what nobody has taken.
cdef void batch_stop(SenderBatch* batch) noexcept nogil
# Whether all senders and authorities are known.
cdef bint are_recovered(Tx** transactions, size_t count) noexcept nogil
