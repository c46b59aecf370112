# Receipts as C data: consensus encoding, blooms, and the receipts root.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.records cimport LogRecord


cdef struct ReceiptRecord:
    uint32_t tx_type
    bint success
    bint has_post_state      # before Byzantium: the receipt has a state root, no status
    Hash post_state
    uint64_t gas_used
    uint64_t cumulative_gas_used
    uint64_t blob_gas_used
    bint has_blobs
    bint has_da_footprint    # blob_gas_used is the transaction's part of the DA footprint, in gas
    bint has_deposit_nonce   # a deposit, from Regolith on
    uint64_t deposit_nonce
    uint64_t deposit_version  # 0: the encoding omits the nonce
    Word effective_price     # wei per gas
    bint has_created
    Address created
    size_t first_log         # index into the world's logs
    size_t log_count  # includes pseudo logs (ether transfers in simulations), which are not encoded
    size_t encoded_at        # offset in ReceiptList.encoded
    size_t encoded_size
    uint8_t bloom[BLOOM_SIZE]


cdef struct ReceiptList:
    ReceiptRecord* records
    size_t count
    size_t capacity
    const uint8_t* bloom     # the block's bloom if the records are borrowed (read-only); else NULL
    Buffer encoded           # the encodings with their type bytes, one after the other


cdef void receipts_clear(ReceiptList* list) noexcept nogil
cdef void receipts_free(ReceiptList* list) noexcept nogil
# Append a zeroed record, valid until the next append. Returns NULL if memory is exhausted.
cdef ReceiptRecord* receipts_add(ReceiptList* list) noexcept nogil
# Borrow finished records of another object. `bloom` is the bloom of the block; encodings are
# absent.
cdef void receipts_borrow(
    ReceiptList* list, ReceiptRecord* records, size_t count, const uint8_t* bloom
) noexcept nogil
# Compute blooms and encodings of the records from `first` up to `end`. Appends the encodings to
# `out`; `encoded_at` counts from the start of `out`.
cdef bint receipts_encode_range(
    ReceiptRecord* records, size_t first, size_t end, const LogRecord* logs, Buffer* out
) noexcept nogil
# Fill in blooms and encodings of the records from `first` on, none of which may be encoded yet.
# Returns False if memory is exhausted, as do the functions below.
cdef bint receipts_encode_from(
    ReceiptList* list, size_t first, const LogRecord* logs
) noexcept nogil
# Like receipts_encode_from, on several threads if there are many receipts.
cdef bint receipts_encode_on_threads(
    ReceiptList* list, size_t first, const LogRecord* logs, int threads
) noexcept nogil
# Write pointers to the encodings: the items of the receipts trie.
cdef void receipts_items(
    const ReceiptList* list, const uint8_t** items, size_t* sizes
) noexcept nogil
cdef bint receipts_root(const ReceiptList* list, int threads, Hash* out) noexcept nogil
cdef void receipts_bloom(const ReceiptList* list, uint8_t* bloom) noexcept nogil

# Return the immutable values of fastevm.core.execution.types.
cdef object log_value(const LogRecord* log)
cdef object receipt_value(const ReceiptRecord* record, const LogRecord* logs, object blob_gas_price)
