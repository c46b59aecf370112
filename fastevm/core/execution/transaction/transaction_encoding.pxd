# Canonical bytes of transactions, and their hashes.
from libc.stdint cimport uint8_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash


# The bytes of a field, given as bytes or hex text; TypeError with its name for anything else.
# The address and slots of an entry: a pair, or a mapping as in JSON-RPC.
cdef tuple access_list_entry(object entry)
# The envelope of the fields that Transaction.build names; TransactionDecodeError, TypeError.
cdef bytes encode_fields(dict fields)
# The same transaction with another signature.
cdef bytes encode_signed(const Tx* tx, object v, object r, object s)

# Append the canonical bytes of a transaction of any type with a signature of zeros, as a simulated
# block shows it. False: out of memory.
cdef bint tx_append_unsigned(Buffer* out, const Tx* tx) noexcept nogil

# The hash of each of `count` envelopes.
cdef void envelope_hashes(
    const uint8_t** envelopes, const size_t* sizes, size_t count, Hash* out
) noexcept nogil
