"""Executes the transactions of a block, one after the other in one world, without the GIL."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.execution.receipts cimport (
    ReceiptRecord,
    receipts_add,
    receipts_clear,
    receipts_encode_last,
    receipts_free,
)
from fastevm.execution.transact cimport transact
from fastevm.execution.transaction_data cimport BLOB_TX, Tx
from fastevm.execution.transaction_result cimport (
    TX_OUT_OF_MEMORY,
    TX_TOO_MANY_BLOBS,
    TX_VALID,
    TxError,
    TxOptions,
    TxResult,
)
from fastevm.interpreter.machine cimport machine_free, machine_new
from fastevm.interpreter.status cimport STOPPED
from fastevm.primitives.word cimport word_copy, word_set
from fastevm.spec.schedule cimport Schedule
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport world_begin, world_free, world_new


cdef bint executor_new(BlockExecutor* b) noexcept nogil:
    memset(b, 0, sizeof(BlockExecutor))
    b.machine = machine_new()
    b.world = world_new()
    return b.machine != NULL and b.world != NULL


cdef void executor_free(BlockExecutor* b) noexcept nogil:
    if b.machine != NULL:
        machine_free(b.machine)
    if b.world != NULL:
        world_free(b.world)
    receipts_free(&b.receipts)
    memset(b, 0, sizeof(BlockExecutor))


cdef void executor_open(
    BlockExecutor* b, const Schedule* schedule, const Reader* reader
) noexcept nogil:
    b.schedule = schedule
    b.gas_used = b.blob_gas_used = 0
    receipts_clear(&b.receipts)
    world_begin(b.world, reader)
    b.world.clears_empty_accounts = schedule.clears_empty_accounts
    b.machine.world = b.world
    b.machine.schedule = schedule
    b.machine.block = &b.context


cdef bint blobs_fit(const BlockExecutor* b, const Tx* tx, TxResult* result) noexcept nogil:
    """Whether the block has room for the transaction's blobs (EIP-4844)."""
    cdef uint64_t used
    if tx.tx_type != BLOB_TX or not b.schedule.has_blobs:
        return True
    used = b.blob_gas_used // b.schedule.blob_gas_per_blob + tx.blob_count
    if used <= b.schedule.blob_max:
        return True
    memset(result, 0, sizeof(TxResult))
    word_set(&result.have, used)
    word_set(&result.want, b.schedule.blob_max)
    return False


cdef TxError executor_transact(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, TxResult* result
) noexcept nogil:
    cdef ReceiptRecord* record
    cdef uint64_t limit = b.context.gas_limit
    if not options.skip_block_gas and not blobs_fit(b, tx, result):
        result.error = TX_TOO_MANY_BLOBS
        return TX_TOO_MANY_BLOBS
    # The record is allocated first: after the transaction nothing may fail.
    record = receipts_add(&b.receipts)
    if record == NULL:
        result.error = TX_OUT_OF_MEMORY
        return TX_OUT_OF_MEMORY
    limit = limit - b.gas_used if b.gas_used < limit else 0
    if transact(b.machine, tx, options, limit, result) != TX_VALID:
        b.receipts.count -= 1
        return result.error
    executor_record(b, record, tx, result)
    return TX_VALID


cdef void executor_record(
    BlockExecutor* b, ReceiptRecord* record, const Tx* tx, const TxResult* result
) noexcept nogil:
    b.gas_used += result.gas_used
    b.blob_gas_used += result.blob_gas_used
    record.tx_type = tx.tx_type
    record.success = result.status == STOPPED
    record.gas_used = result.gas_used
    record.cumulative_gas_used = b.gas_used
    record.has_blobs = tx.tx_type == BLOB_TX
    record.blob_gas_used = result.blob_gas_used
    word_copy(&record.effective_price, &result.effective_price)
    record.has_created = result.has_created
    record.created = result.created
    record.first_log = result.first_log
    record.log_count = result.log_count


cdef bint executor_encode_receipt(BlockExecutor* b) noexcept nogil:
    return receipts_encode_last(&b.receipts, b.world.logs)


cdef size_t executor_transact_all(
    BlockExecutor* b, const Tx** transactions, size_t count, TxResult* result
) noexcept nogil:
    cdef TxOptions options
    cdef size_t i
    memset(&options, 0, sizeof(options))
    for i in range(count):
        if executor_transact(b, transactions[i], &options, result) != TX_VALID:
            return i
        if not executor_encode_receipt(b):
            result.error = TX_OUT_OF_MEMORY
            return i
    return count
