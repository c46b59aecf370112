# Recovers the signers of a transaction and its authorizations (EIP-155, EIP-2, EIP-7702).
from fastevm.execution.transaction_data cimport SENDER_UNKNOWN, SENDER_WRITING, SenderState, Tx
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.intrinsics cimport atomic_observe_int


# The state of the sender; another thread may be recovering it at the same time.
cdef inline SenderState sender_state_of(const Tx* tx) noexcept nogil:
    cdef SenderState state = <SenderState>atomic_observe_int(<const int*>&tx.sender_state)
    return SENDER_UNKNOWN if state == SENDER_WRITING else state


cdef inline bint authorities_are_known(const Tx* tx) noexcept nogil:
    return atomic_observe_int(<const int*>&tx.authorities_known)


# Fill in sender_state, sender and the authorities, unless they are known. False: out of memory.
cdef bint tx_recover(Tx* tx, Buffer* scratch) noexcept nogil
# The same for many; with AVX-512 IFMA in a quarter of the time.
cdef bint tx_recover_many(Tx** transactions, size_t count, Buffer* scratch) noexcept nogil
