# The transactions of simulated blocks: their encodings, hashes and roots.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.simulation.plan cimport List


# The transactions of all blocks of a chain. The current block is the last one.
cdef struct Body:
    Buffer envelopes          # the encoded transactions, one after the other
    List offsets               # size_t: the offset of each envelope
    List hashes               # Hash: transaction hashes of the finished blocks
    size_t first              # index of the current block's first transaction
    size_t begins             # offset of the current block's first envelope
    uint64_t string_headers   # bytes of RLP string headers for typed transactions of the block


cdef void body_clear(Body* body) noexcept nogil
cdef void body_free(Body* body) noexcept nogil
# Begin the next block.
cdef void body_next_block(Body* body) noexcept nogil
# Append a transaction. Returns False if memory is exhausted, as do the functions below.
cdef bint body_add(Body* body, const Tx* tx) noexcept nogil
# Compute the transactions root of the current block and the hash of each transaction. The block
# must not be empty.
cdef bint body_hash(Body* body, Hash* root) noexcept nogil
# Returns the size in bytes of the RLP of the block: header, transactions, no uncles and, if the
# fork has withdrawals, a list of `withdrawals_size` bytes.
cdef uint64_t block_size(
    const Body* body, uint64_t header_size, bint has_withdrawals, uint64_t withdrawals_size
) noexcept nogil
# Returns the canonical encoding of a transaction.
cdef bytes envelope_at(const Body* body, size_t index)
