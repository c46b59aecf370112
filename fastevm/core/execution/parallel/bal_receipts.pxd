# The receipts of a block that runs by its access list: gas and places in the order of the
# transactions first, then records, logs, blooms, encodings and the root by all threads.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.block.receipts cimport ReceiptRecord
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxResult
from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.state.records cimport LogRecord
from fastevm.core.trie.ordered cimport OrderedList


cdef enum:
    RECEIPTS_AT_ONCE = 32     # that a thread takes: a share


# What a transaction left, for whoever makes its receipt.
cdef struct Outcome:
    TxResult result
    LogRecord* logs


# What is looked at in the order of the transactions.
cdef struct Turn:
    uint64_t gas_used
    uint64_t block_gas
    uint64_t block_state_gas
    uint64_t blob_gas_used
    uint64_t needs_regular_gas
    uint64_t needs_state_gas
    size_t log_count
    uint64_t log_indices     # those of reverted logs included
    size_t log_bytes
    # --- where it goes ---
    uint64_t cumulative_gas_used
    size_t first_log
    uint64_t first_index
    size_t first_byte


cdef struct ReceiptShare:
    Buffer encoded
    uint8_t bloom[BLOOM_SIZE]


cdef struct ListReceipts:
    size_t count
    const Tx** transactions  # borrowed
    Turn* turns
    Outcome* outcomes
    ReceiptShare* shares
    int64_t share_count
    const uint8_t** items    # the encodings
    size_t* sizes
    OrderedList trie
    Address deposit_contract
    # --- what comes out ---
    ReceiptRecord* records   # one piece of memory with the logs and their data: the caller's
    LogRecord* logs
    uint8_t* data
    size_t log_count
    int has_deposits         # a log of the deposit contract: atomic
    int failed               # no memory: atomic
    uint8_t bloom[BLOOM_SIZE]
    Hash root


# False: no memory. `list_receipts_free` is needed in any case.
cdef bint list_receipts_open(
    ListReceipts* r, const Tx** transactions, size_t count
) noexcept nogil
# Beside the transactions: what the root needs to know.
cdef void list_receipts_plan(ListReceipts* r) noexcept nogil
# A transaction has run; its logs outlive the block.
cdef void list_receipts_take_turn(ListReceipts* r, size_t at, uint64_t log_indices) noexcept nogil
# All have run: gas and blobs in their order. False: one has no room in the block, or no memory.
cdef bint list_receipts_settle(ListReceipts* r, BlockExecutor* b) noexcept nogil
# One share, by its number, in any order.
cdef void list_receipts_fill(ListReceipts* r, const BlockExecutor* b, int64_t share) noexcept nogil
# Between both: the root is made of what was encoded.
cdef void list_receipts_gather(ListReceipts* r) noexcept nogil
# After the leaves and branches of `trie`. False: no memory.
cdef bint list_receipts_close(ListReceipts* r) noexcept nogil
cdef void list_receipts_free(ListReceipts* r) noexcept nogil
