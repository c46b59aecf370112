# The body of a simulated block: the envelopes of its transactions, and what follows from them.
from libc.stdint cimport uint64_t

from fastevm.execution.tx cimport Tx
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Hash
from fastevm.simulate.jobs cimport List


cdef struct Body:
    Buffer envelopes          # one after the other
    List places               # size_t: where each begins
    uint64_t string_headers   # bytes that the headers of typed ones take in the block's list


cdef void body_clear(Body* body) noexcept nogil
cdef void body_free(Body* body) noexcept nogil
# Append a transaction. False: out of memory, the same as below.
cdef bint body_add(Body* body, const Tx* tx) noexcept nogil
# The root of the transactions; the hash of each is appended to `hashes` (Hash). Not for none.
cdef bint body_hash(const Body* body, Hash* root, List* hashes) noexcept nogil
# Bytes of the RLP of the block: the header's bytes, this body, no uncles, no withdrawals.
cdef uint64_t block_size(uint64_t header_size, const Body* body) noexcept nogil
