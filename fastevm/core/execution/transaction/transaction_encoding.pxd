# Canonical bytes of transactions, and their hashes.
from libc.stdint cimport uint8_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash


# Returns the envelope for the fields of Transaction.build. Raises TransactionDecodeError or
# TypeError.
cdef bytes encode_fields(dict fields)
# Returns the envelope of a transaction with another signature.
cdef bytes encode_signed(const Tx* tx, object v, object r, object s)

# Append the canonical bytes of a transaction of any type with v = r = s = 0, for simulated blocks.
# Returns False if memory is exhausted.
cdef bint tx_append_unsigned(Buffer* out, const Tx* tx) noexcept nogil

# Compute the transaction hashes of `count` envelopes.
cdef void envelope_hashes(
    const uint8_t** envelopes, const size_t* sizes, size_t count, Hash* out
) noexcept nogil
