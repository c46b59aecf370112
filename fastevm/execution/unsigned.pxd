# The envelopes of unsigned transactions from C data, and their hashes.
from libc.stdint cimport uint8_t

from fastevm.execution.tx cimport Tx
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Hash


# Append the canonical bytes of a transaction of any type, its signature all zeros, as a simulated
# block shows it. False: out of memory.
cdef bint tx_append_unsigned(Buffer* out, const Tx* tx) noexcept nogil

# The hash of each of `count` envelopes.
cdef void envelope_hashes(
    const uint8_t** envelopes, const size_t* sizes, size_t count, Hash* out
) noexcept nogil
