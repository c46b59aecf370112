# The receipts of a block that is executed by its access list. One thread adds up gas and log
# indices in the order of the transactions; then all threads fill in records, logs and blooms,
# encode them and compute the receipts root.
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
    RECEIPTS_AT_ONCE = 32     # receipts per share


# The result of a transaction, from which its receipt is made.
cdef struct Outcome:
    TxResult result
    LogRecord* logs


# The numbers from which a receipt is made: those of its transaction, and sums over the earlier
# transactions of the block.
cdef struct ReceiptInput:
    uint64_t gas_used
    uint64_t block_gas
    uint64_t block_state_gas
    uint64_t blob_gas_used
    uint64_t needs_regular_gas
    uint64_t needs_state_gas
    size_t log_count
    uint64_t log_indices     # number of log indices used, including those of reverted logs
    size_t log_bytes
    # --- sums over earlier transactions ---
    uint64_t cumulative_gas_used
    size_t first_log
    uint64_t first_index
    size_t first_byte


cdef struct ReceiptShare:
    Buffer encoded
    uint8_t bloom[BLOOM_SIZE]


cdef struct BalReceipts:
    size_t count
    const Tx** transactions  # borrowed
    ReceiptInput* inputs
    Outcome* outcomes
    ReceiptShare* shares
    int64_t share_count
    const uint8_t** items    # the encoded receipts
    size_t* sizes
    OrderedList trie
    Address deposit_contract
    # --- results ---
    ReceiptRecord* records   # with logs and data in one allocation, which the caller frees
    LogRecord* logs
    uint8_t* data
    size_t log_count
    int has_deposits         # atomic: the deposit contract wrote a log
    int failed               # atomic: out of memory
    uint8_t bloom[BLOOM_SIZE]
    Hash root


# Returns False if memory is exhausted; call `bal_receipts_free` in any case.
cdef bint bal_receipts_open(
    BalReceipts* r, const Tx** transactions, size_t count
) noexcept nogil
# Prepare the receipts trie. May run in parallel with the transactions.
cdef void bal_receipts_plan(BalReceipts* r) noexcept nogil
# Record the result of transaction `at`, which used `log_indices` log indices. Its logs must stay
# valid until the block ends.
cdef void bal_receipts_record(BalReceipts* r, size_t at, uint64_t log_indices) noexcept nogil
# Add up gas, blob gas and logs in the order of the transactions. Returns False if the block has too
# little gas for a transaction, or if memory is exhausted.
cdef bint bal_receipts_accumulate(BalReceipts* r, BlockExecutor* b) noexcept nogil
# Make the receipts of the share with this index. Shares may be made in any order.
cdef void bal_receipts_fill(BalReceipts* r, const BlockExecutor* b, int64_t share) noexcept nogil
# Pass the encoded receipts of all shares to the trie.
cdef void bal_receipts_gather(BalReceipts* r) noexcept nogil
# Compute the receipts root, after the leaves and branches of `trie` are hashed. Returns False if
# memory is exhausted.
cdef bint bal_receipts_close(BalReceipts* r) noexcept nogil
cdef void bal_receipts_free(BalReceipts* r) noexcept nogil
