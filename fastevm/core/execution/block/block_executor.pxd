# Executes the transactions of a block without the GIL: a machine, a world, and the receipts so far.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.execution.block.receipts cimport ReceiptList, ReceiptRecord
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.block.system_operations cimport SystemContracts
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.interpreter.machine cimport BlockContext, Machine
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.world cimport World


# An amount of wei that the end of a block adds to a balance: a reward or a withdrawal.
cdef struct Credit:
    Address address
    Word amount


cdef struct BlockExecutor:
    Machine* machine         # owned
    World* world             # owned
    const Schedule* schedule  # borrowed
    BlockContext context     # its ancestors are borrowed
    uint64_t gas_used        # gas used as the header counts it
    uint64_t gas_paid        # gas used as receipts count it, after refunds
    uint64_t regular_gas_used  # in forks with state gas
    uint64_t state_gas_used  # in forks with state gas
    uint64_t gas_given_back  # gas refunded by a post-exec transaction; the gas limit counts it
    uint64_t blob_gas_used
    ReceiptList receipts


# Initialises an executor. Returns False if memory is exhausted; call executor_free in any case.
cdef bint executor_new(BlockExecutor* b) noexcept nogil
cdef void executor_free(BlockExecutor* b) noexcept nogil
# Like executor_new and executor_free, but reuse the memory of the previous block. Require the GIL.
cdef bint executor_take(BlockExecutor* b) noexcept
cdef void executor_leave(BlockExecutor* b) noexcept
# Begin a block on the state of `reader`. The caller fills in `context` before the first
# transaction.
cdef void executor_open(
    BlockExecutor* b, const Schedule* schedule, const Reader* reader
) noexcept nogil

# Begin the next block in the same world under `schedule`: resets gas, receipts and logs.
cdef void executor_next_block(BlockExecutor* b, const Schedule* schedule) noexcept nogil
# Start a block: record accesses if the fork has access lists (EIP-7928), then make the system
# calls. Returns SYSTEM_DONE or an outcome >= SYSTEM_NEEDS_STATE.
cdef SystemOutcome executor_start(
    BlockExecutor* b, const SystemContracts* contracts, const uint8_t* beacon_root,
    const uint8_t* parent_hash
) noexcept nogil
# Pay rewards and then withdrawals (EIP-4895), after the transactions and before the requests. From
# this call on, the access list records accesses under the index that follows the last
# transaction's.
cdef SystemOutcome executor_pay(
    BlockExecutor* b, const Credit* credits, size_t count
) noexcept nogil
# Check that the block has enough blob gas left for the transaction (EIP-4844), or enough DA
# footprint (OP stack, Jovian). `footprint` receives the transaction's part of the footprint, in
# gas. On an error, `result.have` and `result.want` are the two amounts.
cdef TxError block_has_room(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, uint64_t* footprint, TxResult* result
) noexcept nogil
# Returns whether the transaction's gas limit fits into the unused part of `budget` gas, in each gas
# dimension of the fork.
cdef bint executor_has_gas(const BlockExecutor* b, const Tx* tx, uint64_t budget) noexcept nogil
# Execute a transaction and append the record of its receipt without the encoding. An error changes
# nothing.
cdef TxError executor_transact(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, TxResult* result
) noexcept nogil
# Add a transaction's gas to the block and fill in the record of its receipt.
cdef void executor_record(
    BlockExecutor* b, ReceiptRecord* record, const Tx* tx, uint64_t footprint, TxResult* result
) noexcept nogil
# The two steps of executor_record, for a caller that counts gas for all transactions before it
# fills in the records. The first step adds gas to the block: `used` after refunds, `regular` and
# `state` in forks with state gas, `blobs` blob gas. The second step fills in a zeroed record.
cdef void executor_count_gas(
    BlockExecutor* b, uint64_t used, uint64_t regular, uint64_t state, uint64_t blobs
) noexcept nogil
cdef void executor_fill_record(
    const Schedule* schedule, ReceiptRecord* record, const Tx* tx, const TxResult* result,
    uint64_t cumulative_gas_used
) noexcept nogil
# Encode the last receipt. Returns False if memory is exhausted.
cdef bint executor_encode_receipt(BlockExecutor* b) noexcept nogil
# Execute the transactions from `first` on. Returns the number executed, including those before
# `first`. The receipts are not encoded. `result` receives the result of the last transaction tried.
# `refunds` is NULL, or the gas that the block's post-exec transaction refunds to each transaction.
cdef size_t executor_transact_from(
    BlockExecutor* b, const Tx** transactions, size_t first, size_t count,
    const uint64_t* refunds, TxResult* result
) noexcept nogil
# Encode all receipts from index `first` on. Returns False if memory is exhausted.
cdef bint executor_encode_receipts(BlockExecutor* b, size_t first, int threads) noexcept nogil
