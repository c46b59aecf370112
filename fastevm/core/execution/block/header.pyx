"""The RLP of a block header from C data (Yellow Paper, 4.3)."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from hashlib import sha256

from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.rlp cimport (
    rlp_append_bytes,
    rlp_append_uint64,
    rlp_append_word,
    rlp_list_begin,
    rlp_list_end,
)


cdef enum:
    NONCE_SIZE = 8
    EMPTY_LIST = 0xc0        # RLP of an empty list
    EMPTY_STRING = 0x80      # RLP of an empty string


cdef void fill_constants():
    cdef uint8_t item = EMPTY_LIST
    cdef bytes no_requests = sha256(b"").digest()
    keccak256(EMPTY_LIST_HASH.b, &item, 1)
    item = EMPTY_STRING
    keccak256(EMPTY_ROOT.b, &item, 1)
    memcpy(NO_REQUESTS_HASH.b, PyBytes_AS_STRING(no_requests), 32)


cdef bint append_numbers(Buffer* out, const HeaderFields* h) noexcept nogil:
    """From the difficulty to the nonce."""
    cdef uint8_t nonce[NONCE_SIZE]
    memset(nonce, 0, NONCE_SIZE)
    return (
        rlp_append_word(out, &h.difficulty)
        and rlp_append_uint64(out, h.number)
        and rlp_append_uint64(out, h.gas_limit)
        and rlp_append_uint64(out, h.gas_used)
        and rlp_append_uint64(out, h.timestamp)
        and rlp_append_bytes(out, h.extra_data, h.extra_data_size)
        and rlp_append_bytes(out, h.mix_hash.b, 32)
        and rlp_append_bytes(out, nonce, NONCE_SIZE)
    )


cdef bint append_later_fields(Buffer* out, const HeaderFields* h) noexcept nogil:
    """The fields that London and the forks after it added."""
    if h.has_base_fee and not rlp_append_word(out, &h.base_fee_per_gas):
        return False
    if h.has_withdrawals and not rlp_append_bytes(out, h.withdrawals_root.b, 32):
        return False
    if h.has_blobs and not (
        rlp_append_uint64(out, h.blob_gas_used)
        and rlp_append_uint64(out, h.excess_blob_gas)
        and rlp_append_bytes(out, h.parent_beacon_block_root.b, 32)
    ):
        return False
    if h.has_requests and not rlp_append_bytes(out, h.requests_hash.b, 32):
        return False
    if h.has_block_access_list and not rlp_append_bytes(out, h.block_access_list_hash.b, 32):
        return False
    return not h.has_slot_number or rlp_append_uint64(out, h.slot_number)


cdef bint header_append(Buffer* out, const HeaderFields* h) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out)
    return (
        rlp_append_bytes(out, h.parent_hash.b, 32)
        and rlp_append_bytes(out, EMPTY_LIST_HASH.b, 32)
        and rlp_append_bytes(out, h.coinbase.b, 20)
        and rlp_append_bytes(out, h.state_root.b, 32)
        and rlp_append_bytes(out, h.transactions_root.b, 32)
        and rlp_append_bytes(out, h.receipts_root.b, 32)
        and rlp_append_bytes(out, h.logs_bloom, BLOOM_SIZE)
        and append_numbers(out, h)
        and append_later_fields(out, h)
        and rlp_list_end(out, mark)
    )


fill_constants()
