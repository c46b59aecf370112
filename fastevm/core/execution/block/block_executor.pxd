# Executes the transactions of a block: a machine, a world, and the receipts so far. Without the
# GIL.
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
    uint64_t gas_used        # as the header counts it
    uint64_t gas_paid        # as the receipts count it: after refunds
    uint64_t regular_gas_used  # this and the next: in forks with state gas
    uint64_t state_gas_used
    uint64_t gas_given_back  # by a post-exec transaction; the gas limit counts it all the same
    uint64_t blob_gas_used
    ReceiptList receipts


# False: out of memory; executor_free is needed in any case.
cdef bint executor_new(BlockExecutor* b) noexcept nogil
cdef void executor_free(BlockExecutor* b) noexcept nogil
# The same for who makes one for each block: what the block before left is used again. With the GIL.
cdef bint executor_take(BlockExecutor* b) noexcept
cdef void executor_leave(BlockExecutor* b) noexcept
# Begin a block on the reader's state; `context` is filled in by the caller before the first run.
cdef void executor_open(
    BlockExecutor* b, const Schedule* schedule, const Reader* reader
) noexcept nogil

# Begin the next block in the same world: no gas, receipts or logs yet, under `schedule`.
cdef void executor_next_block(BlockExecutor* b, const Schedule* schedule) noexcept nogil
# What a block does before its transactions: record accesses where the fork has access lists
# (EIP-7928), then the system calls of the start. SYSTEM_DONE, or an outcome >= SYSTEM_NEEDS_STATE.
cdef SystemOutcome executor_start(
    BlockExecutor* b, const SystemContracts* contracts, const uint8_t* beacon_root,
    const uint8_t* parent_hash
) noexcept nogil
# What a block does after its transactions and before its requests: rewards, then withdrawals
# (EIP-4895). Accesses from here on count as those after the last transaction.
cdef SystemOutcome executor_pay(
    BlockExecutor* b, const Credit* credits, size_t count
) noexcept nogil
# Whether the block has room for the transaction's blobs (EIP-4844), or its share in the DA
# footprint (OP stack, Jovian), which comes back too. If not, `result` has the error with both
# numbers.
cdef TxError block_has_room(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, uint64_t* footprint, TxResult* result
) noexcept nogil
# Whether the transaction fits in so much gas of the block, in each dimension that the fork has.
cdef bint executor_has_gas(const BlockExecutor* b, const Tx* tx, uint64_t budget) noexcept nogil
# Run one transaction and append the record of its receipt, without its encoding. An error changes
# nothing.
cdef TxError executor_transact(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, TxResult* result
) noexcept nogil
# Add a transaction's gas to the block, and fill in the record of its receipt.
cdef void executor_record(
    BlockExecutor* b, ReceiptRecord* record, const Tx* tx, uint64_t footprint, TxResult* result
) noexcept nogil
# Both in steps, for who records in another order: gas by its turn (`used`: after refunds; regular
# and state gas in forks that have both), then the record, which is zero.
cdef void executor_count_gas(
    BlockExecutor* b, uint64_t used, uint64_t regular, uint64_t state, uint64_t blobs
) noexcept nogil
cdef void executor_fill_record(
    const Schedule* schedule, ReceiptRecord* record, const Tx* tx, const TxResult* result,
    uint64_t cumulative_gas_used
) noexcept nogil
# Encode the last receipt. False: out of memory.
cdef bint executor_encode_receipt(BlockExecutor* b) noexcept nogil
# Run the transactions from `first` on; the number that ran, those before included. Their receipts
# are not encoded. `result`: of the last one that was tried. `refunds`: NULL, or the gas given back
# to each, by a post-exec transaction at the end.
cdef size_t executor_transact_from(
    BlockExecutor* b, const Tx** transactions, size_t first, size_t count,
    const uint64_t* refunds, TxResult* result
) noexcept nogil
# Encode the receipts from this one on together. False: out of memory.
cdef bint executor_encode_receipts(BlockExecutor* b, size_t first, int threads) noexcept nogil
