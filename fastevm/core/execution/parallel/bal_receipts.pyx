"""Makes the receipts of a block whose transactions ran in parallel, on several threads."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.block.block_executor cimport (
    block_has_room,
    executor_count_gas,
    executor_fill_record,
)
from fastevm.core.execution.block.receipts cimport ReceiptRecord, receipts_encode_range
from fastevm.core.execution.transaction.transaction_data cimport BLOB_TX, Tx
from fastevm.core.execution.transaction.transaction_result cimport TX_VALID, TxOptions, TxResult
from fastevm.core.execution.transaction.transaction_state_gas cimport check_room
from fastevm.core.primitives.bloom cimport bloom_merge
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.intrinsics cimport atomic_observe_int, atomic_publish_int
from fastevm.core.primitives.stages cimport shares_of
from fastevm.core.state.records cimport LogRecord
from fastevm.core.trie.ordered cimport ordered_close, ordered_fill, ordered_free, ordered_open


cdef bint bal_receipts_open(
    BalReceipts* r, const Tx** transactions, size_t count
) noexcept nogil:
    memset(r, 0, sizeof(BalReceipts))
    r.transactions = transactions
    r.count = count
    r.share_count = shares_of(count, RECEIPTS_AT_ONCE)
    r.inputs = <ReceiptInput*>PyMem_RawMalloc(count * sizeof(ReceiptInput))
    r.outcomes = <Outcome*>PyMem_RawMalloc(count * sizeof(Outcome))
    r.shares = <ReceiptShare*>PyMem_RawCalloc(<size_t>r.share_count, sizeof(ReceiptShare))
    r.items = <const uint8_t**>PyMem_RawMalloc(count * sizeof(uint8_t*))
    r.sizes = <size_t*>PyMem_RawMalloc(count * sizeof(size_t))
    return (
        r.inputs != NULL and r.outcomes != NULL and r.shares != NULL and r.items != NULL
        and r.sizes != NULL
    )


cdef void bal_receipts_free(BalReceipts* r) noexcept nogil:
    cdef int64_t share
    if r.shares != NULL:
        for share in range(r.share_count):
            buffer_free(&r.shares[share].encoded)
    PyMem_RawFree(r.shares)
    PyMem_RawFree(r.inputs)
    PyMem_RawFree(r.outcomes)
    PyMem_RawFree(r.items)
    PyMem_RawFree(r.sizes)
    PyMem_RawFree(r.records)
    ordered_free(&r.trie)
    memset(r, 0, sizeof(BalReceipts))


cdef void bal_receipts_plan(BalReceipts* r) noexcept nogil:
    if not ordered_open(&r.trie, r.count):
        atomic_publish_int(&r.failed, True)


cdef void bal_receipts_record(BalReceipts* r, size_t at, uint64_t log_indices) noexcept nogil:
    cdef ReceiptInput* input = &r.inputs[at]
    cdef const Outcome* outcome = &r.outcomes[at]
    cdef const TxResult* result = &outcome.result
    cdef size_t i
    input.gas_used = result.gas_used
    input.block_gas = result.block_gas
    input.block_state_gas = result.block_state_gas
    input.blob_gas_used = result.blob_gas_used
    input.needs_regular_gas = result.needs_regular_gas
    input.needs_state_gas = result.needs_state_gas
    input.log_count = result.log_count
    input.log_indices = log_indices
    input.log_bytes = 0
    for i in range(result.log_count):
        input.log_bytes += outcome.logs[i].size


# ----------------------------------------------------------------------------------------------
# sums over the transactions: these functions take the transactions in order

cdef bint has_room(const BlockExecutor* b, const Tx* tx, ReceiptInput* input) noexcept nogil:
    """Whether the block has gas and blob gas left for a transaction."""
    cdef uint64_t footprint = 0, limit = b.context.gas_limit
    cdef TxOptions options
    cdef TxResult room
    memset(&room, 0, sizeof(room))
    if tx.tx_type == BLOB_TX or b.schedule.has_da_footprint:
        memset(&options, 0, sizeof(options))
        if block_has_room(<BlockExecutor*>b, tx, &options, &footprint, &room) != TX_VALID:
            return False
        if b.schedule.has_da_footprint:
            input.blob_gas_used = footprint
    room.needs_regular_gas = input.needs_regular_gas
    room.needs_state_gas = input.needs_state_gas
    return b.regular_gas_used <= limit and TX_VALID == check_room(
        limit, limit - b.regular_gas_used, b.state_gas_used, &room
    )


cdef bint bal_receipts_accumulate(BalReceipts* r, BlockExecutor* b) noexcept nogil:
    cdef size_t i, bytes = 0
    cdef uint64_t index = 0
    cdef ReceiptInput* input
    for i in range(r.count):
        input = &r.inputs[i]
        if not has_room(b, r.transactions[i], input):
            return False
        executor_count_gas(
            b, input.gas_used, input.block_gas, input.block_state_gas, input.blob_gas_used
        )
        input.cumulative_gas_used = b.gas_paid
        input.first_log = r.log_count
        input.first_index = index
        input.first_byte = bytes
        r.log_count += input.log_count
        index += input.log_indices
        bytes += input.log_bytes
    bytes += r.count * sizeof(ReceiptRecord) + r.log_count * sizeof(LogRecord)
    r.records = <ReceiptRecord*>PyMem_RawMalloc(bytes)
    r.logs = <LogRecord*>(r.records + r.count)
    r.data = <uint8_t*>(r.logs + r.log_count)
    return r.records != NULL


# ----------------------------------------------------------------------------------------------
# records, logs and encodings: threads call these functions for the shares in any order

cdef void copy_logs(BalReceipts* r, size_t at) noexcept nogil:
    cdef const ReceiptInput* input = &r.inputs[at]
    cdef const LogRecord* logs = r.outcomes[at].logs
    cdef uint8_t* data = r.data + input.first_byte
    cdef LogRecord* log
    cdef size_t i
    for i in range(input.log_count):
        log = &r.logs[input.first_log + i]
        log[0] = logs[i]
        log.data = data
        log.index += input.first_index
        memcpy(data, logs[i].data, log.size)
        data += log.size
        if not log.pseudo and address_eq(&log.address, &r.deposit_contract):
            atomic_publish_int(&r.has_deposits, True)


cdef void bal_receipts_fill(BalReceipts* r, const BlockExecutor* b, int64_t share) noexcept nogil:
    cdef size_t first = <size_t>share * RECEIPTS_AT_ONCE, i
    cdef size_t end = min(first + RECEIPTS_AT_ONCE, r.count)
    cdef ReceiptShare* own = &r.shares[share]
    cdef TxResult* result
    for i in range(first, end):
        result = &r.outcomes[i].result
        result.first_log = r.inputs[i].first_log
        result.blob_gas_used = r.inputs[i].blob_gas_used
        memset(&r.records[i], 0, sizeof(ReceiptRecord))
        executor_fill_record(
            b.schedule, &r.records[i], r.transactions[i], result, r.inputs[i].cumulative_gas_used
        )
        copy_logs(r, i)
    if not receipts_encode_range(r.records, first, end, r.logs, &own.encoded):
        atomic_publish_int(&r.failed, True)
    for i in range(first, end):
        if r.records[i].log_count:
            bloom_merge(own.bloom, r.records[i].bloom)
        r.items[i] = own.encoded.bytes + r.records[i].encoded_at
        r.sizes[i] = r.records[i].encoded_size


cdef void bal_receipts_gather(BalReceipts* r) noexcept nogil:
    cdef int64_t share
    for share in range(r.share_count):
        bloom_merge(r.bloom, r.shares[share].bloom)
    ordered_fill(&r.trie, r.items, r.sizes)


cdef bint bal_receipts_close(BalReceipts* r) noexcept nogil:
    return not atomic_observe_int(&r.failed) and ordered_close(&r.trie, &r.root)
