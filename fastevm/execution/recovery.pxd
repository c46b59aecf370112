# Who signed a transaction and its authorizations (EIP-155, EIP-2, EIP-7702).
from fastevm.execution.tx cimport SENDER_UNKNOWN, SENDER_WRITING, SenderState, Tx
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.intrinsics cimport atomic_observe_int


# Whether there is a sender to read. Another thread may be recovering it at this moment.
cdef inline SenderState sender_state_of(const Tx* tx) noexcept nogil:
    cdef SenderState state = <SenderState>atomic_observe_int(<const int*>&tx.sender_state)
    return SENDER_UNKNOWN if state == SENDER_WRITING else state


cdef inline bint authorities_are_known(const Tx* tx) noexcept nogil:
    return atomic_observe_int(<const int*>&tx.authorities_known)


# Fills in sender_state, sender and the authorities; does nothing for what is known. False: out of
# memory.
cdef bint tx_recover(Tx* tx, Buffer* scratch) noexcept nogil
# The same for many, which takes a quarter of the time where the processor has wide vectors.
cdef bint tx_recover_many(Tx** transactions, size_t count, Buffer* scratch) noexcept nogil
