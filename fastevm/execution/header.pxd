# A block header under the current rules as plain C data: its RLP and its hash.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.primitives.bloom cimport BLOOM_SIZE
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.primitives.word cimport Word


# All fields that a header has since Prague, but for those that proof of stake has emptied: no
# uncles, no difficulty, a nonce of zeros; and no extra data. The names are those of
# fastevm.types.Header.
cdef struct HeaderFields:
    Hash parent_hash
    Address coinbase
    Hash state_root
    Hash transactions_root
    Hash receipts_root
    uint8_t logs_bloom[BLOOM_SIZE]
    uint64_t number
    uint64_t gas_limit
    uint64_t gas_used
    uint64_t timestamp
    Hash mix_hash
    Word base_fee_per_gas
    Hash withdrawals_root
    uint64_t blob_gas_used
    uint64_t excess_blob_gas
    Hash parent_beacon_block_root
    Hash requests_hash


# keccak256 of an empty list: the uncles of every such block.
cdef Hash EMPTY_LIST_HASH
# The root of an empty trie.
cdef Hash EMPTY_ROOT
# What stands for no requests (EIP-7685): the SHA-256 of nothing.
cdef Hash NO_REQUESTS_HASH

# Append the RLP. False: out of memory.
cdef bint header_append(Buffer* out, const HeaderFields* h) noexcept nogil
