# A block header as C data, and its RLP.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word


cdef enum:
    FEE_PARAMETERS_SIZE = 17  # the longest extra data (OP stack, Jovian)


# A header without uncles and proof of work (its nonce is zeros). The names are those
# of fastevm.core.execution.types.Header; a field that a fork added is encoded if its flag is set.
cdef struct HeaderFields:
    bint has_base_fee         # London
    bint has_withdrawals      # Shanghai
    bint has_blobs            # Cancun, with the beacon root
    bint has_requests         # Prague
    bint has_block_access_list  # Amsterdam
    bint has_slot_number      # Amsterdam
    Word difficulty
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
    uint8_t extra_data[FEE_PARAMETERS_SIZE]
    uint32_t extra_data_size
    Hash mix_hash
    Word base_fee_per_gas
    Hash withdrawals_root
    uint64_t blob_gas_used
    uint64_t excess_blob_gas
    Hash parent_beacon_block_root
    Hash requests_hash
    Hash block_access_list_hash
    uint64_t slot_number


# keccak256 of an empty list: the hash of no uncles.
cdef Hash EMPTY_LIST_HASH
# The root of an empty trie.
cdef Hash EMPTY_ROOT
# The hash of no requests (EIP-7685): SHA-256 of the empty string.
cdef Hash NO_REQUESTS_HASH

# Append the RLP. False: out of memory.
cdef bint header_append(Buffer* out, const HeaderFields* h) noexcept nogil
