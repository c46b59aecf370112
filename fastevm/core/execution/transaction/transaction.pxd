# The Python class of transactions: it owns a Tx and the bytes that the Tx points into.
from fastevm.core.execution.transaction.transaction_data cimport (
    ACCESS_LIST_TX, BLOB_TX, DEPOSIT_TX, DYNAMIC_FEE_TX, LEGACY_TX, SENDER_BAD_VALUES, SENDER_KNOWN,
    SENDER_NO_KEY, SENDER_UNKNOWN, SET_CODE_TX, AccessEntry, Authorization, SenderState, Tx, TxType,
)


cdef class Transaction:
    """An immutable transaction. The C struct points into `raw`."""
    cdef Tx c
    cdef readonly bytes raw
    cdef bytes _hash

    cdef int check_signable(self) except -1


# Decodes canonical bytes. Raises TransactionDecodeError.
cdef Transaction transaction_from(bytes raw)


# Recover the sender and the authorities unless they are known.
cdef int recover_now(Transaction transaction) except -1
