"""Executes the transactions of a block sequentially in one world, without the GIL."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.block.receipts cimport (
    ReceiptRecord,
    receipts_add,
    receipts_clear,
    receipts_encode_from,
    receipts_encode_on_threads,
    receipts_free,
)
from fastevm.core.execution.arbitrum.block_start cimport record_l1_block
from fastevm.core.execution.block.system_calls cimport (
    SYSTEM_DONE,
    SYSTEM_OUT_OF_MEMORY,
    SystemOutcome,
    system_credit,
)
from fastevm.core.execution.block.system_operations cimport SystemContracts, run_start_calls
from fastevm.core.execution.transaction.transact cimport transact
from fastevm.core.execution.op_stack.l1_fees cimport L1Fees, da_footprint, l1_fees_read
from fastevm.core.execution.transaction.transaction_data cimport BLOB_TX, DEPOSIT_TX, Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_DA_FOOTPRINT,
    TX_NEEDS_STATE,
    TX_OUT_OF_MEMORY,
    TX_TOO_MANY_BLOBS,
    TX_VALID,
    TxError,
    TxOptions,
    TxResult,
)
from fastevm.core.execution.transaction.transaction_state_gas cimport check_room
from fastevm.core.interpreter.machine cimport Machine, machine_free, machine_new, machine_idle
from fastevm.core.interpreter.status cimport STOPPED
from fastevm.core.primitives.intrinsics cimport unlikely
from fastevm.core.primitives.word cimport word_copy, word_set
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.world cimport (
    WORLD_OUT_OF_MEMORY,
    world_begin,
    world_follow,
    world_free,
    world_new,
    world_record_accesses,
)


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


cdef Machine* idle_machine = NULL
cdef World* idle_world = NULL     # NULL if and only if idle_machine is


cdef bint executor_take(BlockExecutor* b) noexcept:
    global idle_machine, idle_world
    if idle_machine == NULL:
        return executor_new(b)
    memset(b, 0, sizeof(BlockExecutor))
    b.machine, b.world = idle_machine, idle_world
    idle_machine, idle_world = NULL, NULL
    return True


# Clears the machine's pointers to objects of the previous block, for example to moved precompiles,
# because their memory may be freed.
cdef void detach(Machine* m) noexcept nogil:
    m.world = NULL
    m.schedule = NULL
    m.block = NULL
    m.transaction = NULL
    m.precompile_moves = NULL
    m.precompile_move_count = 0
    m.tracer = NULL
    m.cancel = NULL
    m.suspend_always = False
    m.ripemd = NULL


cdef void executor_leave(BlockExecutor* b) noexcept:
    global idle_machine, idle_world
    cdef Reader nothing
    if idle_machine == NULL and b.machine != NULL and b.world != NULL:
        memset(&nothing, 0, sizeof(nothing))
        machine_idle(b.machine)
        detach(b.machine)
        world_begin(b.world, &nothing)
        idle_machine, idle_world = b.machine, b.world
        b.machine, b.world = NULL, NULL
    executor_free(b)


cdef void reset_gas(BlockExecutor* b) noexcept nogil:
    b.gas_used = b.gas_given_back = b.blob_gas_used = 0
    b.gas_paid = b.regular_gas_used = b.state_gas_used = 0


cdef void executor_open(
    BlockExecutor* b, const Schedule* schedule, const Reader* reader
) noexcept nogil:
    world_begin(b.world, reader)
    b.machine.world = b.world
    b.machine.block = &b.context
    executor_next_block(b, schedule)


cdef void executor_next_block(BlockExecutor* b, const Schedule* schedule) noexcept nogil:
    b.schedule = b.machine.schedule = schedule
    world_follow(b.world, schedule)
    b.world.log_count = b.world.log_index = 0
    receipts_clear(&b.receipts)
    reset_gas(b)


cdef SystemOutcome executor_start(
    BlockExecutor* b, const SystemContracts* contracts, const uint8_t* beacon_root,
    const uint8_t* parent_hash
) noexcept nogil:
    cdef SystemOutcome outcome
    if b.schedule.has_block_access_list and not world_record_accesses(b.world):
        return SYSTEM_OUT_OF_MEMORY
    if unlikely(b.schedule.arbos_version != 0):
        outcome = record_l1_block(
            b.world, b.context.l1_number, <uint64_t>b.schedule.arbos_version, parent_hash
        )
        if outcome != SYSTEM_DONE:
            return outcome
    return run_start_calls(b.machine, contracts, beacon_root, parent_hash)


cdef SystemOutcome executor_pay(
    BlockExecutor* b, const Credit* credits, size_t count
) noexcept nogil:
    cdef SystemOutcome outcome
    cdef size_t i
    if b.world.accesses != NULL:
        b.world.accesses.index = <uint32_t>b.receipts.count + 1
    for i in range(count):
        outcome = system_credit(b.world, &credits[i].address, &credits[i].amount)
        if outcome != SYSTEM_DONE:
            return outcome
    return SYSTEM_DONE


cdef TxError block_has_room(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, uint64_t* footprint, TxResult* result
) noexcept nogil:
    cdef uint64_t used
    footprint[0] = 0
    memset(result, 0, sizeof(TxResult))
    if tx.tx_type == BLOB_TX and b.schedule.has_blobs and not options.skip_block_gas:
        used = b.blob_gas_used // b.schedule.blob_gas_per_blob + tx.blob_count
        if used > b.schedule.blob_max:
            return over(TX_TOO_MANY_BLOBS, used, b.schedule.blob_max, result)
    if b.schedule.has_da_footprint and tx.tx_type != DEPOSIT_TX and not options.skip_l1_fee:
        return measure_footprint(b, tx, footprint, result)
    return TX_VALID


cdef inline TxError over(
    TxError error, uint64_t have, uint64_t want, TxResult* result
) noexcept nogil:
    word_set(&result.have, have)
    word_set(&result.want, want)
    result.error = error
    return error


cdef TxError measure_footprint(
    BlockExecutor* b, const Tx* tx, uint64_t* out, TxResult* result
) noexcept nogil:
    """Computes a transaction's part of the block's DA footprint, in gas (OP Stack, Jovian)."""
    cdef L1Fees fees
    cdef uint64_t limit = b.context.gas_limit
    cdef uint64_t left = limit - b.blob_gas_used if b.blob_gas_used < limit else 0
    memset(&fees, 0, sizeof(fees))
    if not l1_fees_read(b.schedule, b.world, &fees):
        result.error = TX_NEEDS_STATE
        if b.world.need == WORLD_OUT_OF_MEMORY:
            result.error = TX_OUT_OF_MEMORY
        return result.error
    out[0] = da_footprint(&fees, tx.raw, tx.raw_size)
    return TX_VALID if out[0] <= left else over(TX_DA_FOOTPRINT, left, out[0], result)


cdef bint executor_has_gas(const BlockExecutor* b, const Tx* tx, uint64_t budget) noexcept nogil:
    cdef bint has_both = b.schedule.counts_gas_before_refunds
    cdef uint64_t cap = <uint64_t>b.schedule.tx_gas_cap
    cdef uint64_t used = b.regular_gas_used if has_both else b.gas_used
    cdef TxResult room
    memset(&room, 0, sizeof(room))
    if used > budget:
        return False
    if not has_both:
        return tx.gas_limit <= budget - used
    room.needs_regular_gas = cap if cap != 0 and cap < tx.gas_limit else tx.gas_limit
    room.needs_state_gas = tx.gas_limit
    return TX_VALID == check_room(budget, budget - used, b.state_gas_used, &room)


cdef TxError executor_transact(
    BlockExecutor* b, const Tx* tx, const TxOptions* options, TxResult* result
) noexcept nogil:
    cdef ReceiptRecord* record
    cdef TxOptions counted
    cdef uint64_t limit = b.context.gas_limit, footprint = 0, used
    if block_has_room(b, tx, options, &footprint, result) != TX_VALID:
        return result.error
    # Allocate the record first: after the transaction has changed the world, nothing may fail.
    record = receipts_add(&b.receipts)
    if record == NULL:
        result.error = TX_OUT_OF_MEMORY
        return TX_OUT_OF_MEMORY
    if b.world.accesses != NULL:
        b.world.accesses.index = <uint32_t>b.receipts.count
    used = b.gas_used + b.gas_given_back
    if b.schedule.counts_gas_before_refunds:
        used = b.regular_gas_used
        counted = options[0]
        counted.block_state_gas = b.state_gas_used
        options = &counted
    limit = limit - used if used < limit else 0
    if transact(b.machine, tx, options, limit, result) != TX_VALID:
        b.receipts.count -= 1
        return result.error
    executor_record(b, record, tx, footprint, result)
    b.gas_given_back += options.post_exec_refund
    return TX_VALID


cdef TxError executor_post_exec(BlockExecutor* b, const Tx* tx, TxResult* result) noexcept nogil:
    """Adds the receipt of a post-exec transaction, which has no effect by itself."""
    cdef ReceiptRecord* record = receipts_add(&b.receipts)
    memset(result, 0, sizeof(TxResult))
    if record == NULL:
        result.error = TX_OUT_OF_MEMORY
        return TX_OUT_OF_MEMORY
    result.status = STOPPED
    result.first_log = b.world.log_count
    executor_record(b, record, tx, 0, result)
    return TX_VALID


cdef void executor_record(
    BlockExecutor* b, ReceiptRecord* record, const Tx* tx, uint64_t footprint, TxResult* result
) noexcept nogil:
    if b.schedule.has_da_footprint:
        result.blob_gas_used = footprint
    executor_count_gas(
        b, result.gas_used, result.block_gas, result.block_state_gas, result.blob_gas_used
    )
    executor_fill_record(b.schedule, record, tx, result, b.gas_paid)


cdef void executor_count_gas(
    BlockExecutor* b, uint64_t used, uint64_t regular, uint64_t state, uint64_t blobs
) noexcept nogil:
    b.gas_paid += used
    if b.schedule.counts_gas_before_refunds:
        b.regular_gas_used += regular
        b.state_gas_used += state
        b.gas_used = max(b.regular_gas_used, b.state_gas_used)
    else:
        b.gas_used += used
    b.blob_gas_used += blobs


cdef void executor_fill_record(
    const Schedule* schedule, ReceiptRecord* record, const Tx* tx, const TxResult* result,
    uint64_t cumulative_gas_used
) noexcept nogil:
    record.tx_type = tx.tx_type
    record.success = result.status == STOPPED
    record.gas_used = result.gas_used
    record.cumulative_gas_used = cumulative_gas_used
    record.has_blobs = tx.tx_type == BLOB_TX
    record.has_da_footprint = schedule.has_da_footprint
    if tx.tx_type == DEPOSIT_TX:
        record.has_deposit_nonce = schedule.deposits_report_gas
        record.deposit_nonce = result.deposit_nonce
        record.deposit_version = <uint64_t>schedule.deposit_receipt_version
    record.blob_gas_used = result.blob_gas_used
    word_copy(&record.effective_price, &result.effective_price)
    record.has_created = result.has_created
    record.created = result.created
    record.first_log = result.first_log
    record.log_count = result.log_count


cdef bint executor_encode_receipt(BlockExecutor* b) noexcept nogil:
    return receipts_encode_from(&b.receipts, b.receipts.count - 1, b.world.logs)


cdef size_t executor_transact_from(
    BlockExecutor* b, const Tx** transactions, size_t first, size_t count,
    const uint64_t* refunds, TxResult* result
) noexcept nogil:
    cdef TxOptions options
    cdef TxError error
    cdef size_t i
    memset(&options, 0, sizeof(options))
    for i in range(first, count):
        if refunds != NULL and i + 1 == count:
            error = executor_post_exec(b, transactions[i], result)
        else:
            options.post_exec_refund = refunds[i] if refunds != NULL else 0
            error = executor_transact(b, transactions[i], &options, result)
        if error != TX_VALID:
            return i
    return count


cdef bint executor_encode_receipts(BlockExecutor* b, size_t first, int threads) noexcept nogil:
    return receipts_encode_on_threads(&b.receipts, first, b.world.logs, threads)
