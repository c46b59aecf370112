# The transactions of simulated blocks: their envelopes, and what follows from them.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.simulation.plan cimport List


# The blocks of a chain one after the other; the block under way is the last one.
cdef struct Body:
    Buffer envelopes          # one after the other
    List places               # size_t: where each begins
    List hashes               # Hash: of each transaction of the blocks before
    size_t first              # the first of the block under way
    size_t begins             # where its envelopes begin
    uint64_t string_headers   # bytes that the headers of typed ones take in the block's list


cdef void body_clear(Body* body) noexcept nogil
cdef void body_free(Body* body) noexcept nogil
# Begin the next block.
cdef void body_next_block(Body* body) noexcept nogil
# Append a transaction. False: out of memory, the same as below.
cdef bint body_add(Body* body, const Tx* tx) noexcept nogil
# The root of the block's transactions, and the hash of each. Not for none.
cdef bint body_hash(Body* body, Hash* root) noexcept nogil
# Bytes of the RLP of the block: the header, the transactions, no uncles, and, in forks that have
# them, withdrawals of so many bytes.
cdef uint64_t block_size(
    const Body* body, uint64_t header_size, bint has_withdrawals, uint64_t withdrawals_size
) noexcept nogil
# The canonical bytes of a transaction.
cdef bytes envelope_at(const Body* body, size_t index)
