"""Executes one transaction: validate, buy gas, run, refund, pay (Yellow Paper, section 6).

Deposits and fees besides gas: OP Stack specification, deposits and execution engine.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.delegation cimport apply_authorizations
from fastevm.core.execution.transaction.intrinsic cimport intrinsic_gas
from fastevm.core.execution.op_stack.l1_fees cimport (
    BASE_FEE_VAULT, L1_FEE_VAULT, OPERATOR_FEE_VAULT, l1_data_fee, l1_fees_read, operator_fee,
)
from fastevm.core.execution.transaction.transaction_data cimport DEPOSIT_TX, Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_BLOCK_GAS, TX_CANCELLED, TX_FUNDS_OVERFLOW, TX_INSUFFICIENT_FUNDS, TX_NEEDS_STATE,
    TX_OUT_OF_MEMORY, TX_PAUSED, TX_POST_EXEC_REFUND, TX_UNSUPPORTED, TX_VALID, TxError, TxOptions,
    TxResult,
)
from fastevm.core.execution.transaction.transaction_rules cimport (
    check_envelope, check_fees, check_gas, check_initcode, check_payload, check_sender,
    highest_cost, is_free, word_times,
)
from fastevm.core.execution.transaction.transaction_state_gas cimport (
    check_two_dimensions, pay_for_recipient, refund_two_dimensions, split_gas,
)
from fastevm.core.interpreter.addresses cimport create_address
from fastevm.core.interpreter.machine cimport (
    CALL_MESSAGE, CREATE_MESSAGE, READS_BASE_FEE, READS_BLOB_BASE_FEE, READS_COINBASE,
    READS_GAS_LIMIT, Machine, Message, machine_abandon, machine_run, machine_start,
)
from fastevm.core.interpreter.recorder cimport record_message
from fastevm.core.interpreter.status cimport (
    CANCELLED, HOST_CALL, NEEDS_STATE, NONCE_OVERFLOW, OUT_OF_GAS, OUT_OF_MEMORY, RUNNING,
    SUSPENDED, UNSUPPORTED, Status,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport unlikely
from fastevm.core.primitives.word cimport (
    Word, word_add, word_add_carry, word_copy, word_is_zero, word_lt, word_set, word_sub,
)
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account, Slot, account_covers
from fastevm.core.state.world cimport (
    WORLD_NEEDS_ACCOUNT, WORLD_OUT_OF_MEMORY, Checkpoint, World, world_account, world_add_balance,
    world_begin_transaction, world_checkpoint, world_end_transaction, world_follow,
    world_knows_code, world_list, world_log_burns, world_record_account, world_rollback,
    world_set_balance, world_set_nonce, world_slot, world_sub_balance, world_warm_account,
    world_warm_slot,
)


cdef int64_t HIGHEST_GAS = 0x7fffffffffffffff


cdef TxError transact(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result
) noexcept nogil:
    cdef TxRun run
    memset(&run, 0, sizeof(run))
    cdef TxError error = transact_begin(m, tx, options, block_gas_left, &run, result)
    while error == TX_VALID or error == TX_PAUSED:
        error = transact_run(m, &run, result)
        if error != TX_PAUSED:
            break
        if run.pause != SUSPENDED:
            transact_abandon(m, &run)
            error = TX_NEEDS_STATE if run.pause == NEEDS_STATE else TX_CANCELLED
    m.transaction = NULL
    result.error = error
    return error


cdef TxError transact_begin(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxRun* run,
    TxResult* result
) noexcept nogil:
    cdef World* w = m.world
    cdef TxError error
    memset(result, 0, sizeof(TxResult))
    memset(run, 0, sizeof(TxRun))
    run.tx = tx
    if options != NULL:
        run.options = options[0]
    # Removes the frames of an earlier execution that raised. Observers would read them if this
    # transaction starts no message.
    machine_abandon(m)
    world_follow(w, m.schedule)
    world_begin_transaction(w)
    world_checkpoint(w, &run.start)
    run.first_index = w.log_index
    result.first_log = w.log_count
    if tx.tx_type == DEPOSIT_TX and m.schedule.has_deposits:
        error = begin_deposit(m, run, block_gas_left, result)
        if error != TX_VALID:
            transact_abandon(m, run)
        result.error = error
        return error
    error = validate(m, run, block_gas_left, result)
    if error == TX_VALID:
        if not (buy_gas(m, run, result) and warm_up(m, run) and start_message(m, run, result)):
            error = lacking(m)
            transact_abandon(m, run)
    result.error = error
    return error


cdef void transact_abandon(Machine* m, TxRun* run) noexcept nogil:
    machine_abandon(m)
    world_rollback(m.world, &run.start)
    m.world.log_index = run.first_index


cdef TxError transact_run(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    cdef Status status = result.status
    cdef TxError error
    if status == RUNNING:
        status = machine_run(m)
        if NEEDS_STATE <= status <= HOST_CALL:
            run.pause = status
            return TX_PAUSED
        result.status = status
    elif status == HOST_CALL:
        result.status = RUNNING
        run.pause = status
        return TX_PAUSED
    if status == CANCELLED or status == OUT_OF_MEMORY:
        error = TX_CANCELLED if status == CANCELLED else TX_OUT_OF_MEMORY
    elif status == UNSUPPORTED:
        error = TX_UNSUPPORTED
        result.refused = m.refused
        result.refused_at = m.refused_at
    else:
        error = refund_and_pay(m, run, result)
        if error == TX_VALID:
            return TX_VALID
    transact_abandon(m, run)
    result.error = error
    return error


cdef inline TxError lacking(const Machine* m) noexcept nogil:
    return TX_OUT_OF_MEMORY if m.world.need == WORLD_OUT_OF_MEMORY else TX_NEEDS_STATE


# --- before the first frame ---

# Records the state and block values that the validity checks read. The interpreter records those
# that code reads.
cdef void mark_reads(Machine* m, const TxRun* run) noexcept nogil:
    if run.tx.is_create or not run.options.skip_nonce:
        run.sender.nonce_seen = True
    if not is_free(run.tx, &run.options):
        m.environment_reads |= READS_BASE_FEE | READS_COINBASE
    if run.tx.blob_count != 0:
        m.environment_reads |= READS_BLOB_BASE_FEE
    if m.schedule.state_gas_version != 0:
        m.environment_reads |= READS_GAS_LIMIT


cdef TxError validate(
    Machine* m, TxRun* run, uint64_t block_gas_left, TxResult* result
) noexcept nogil:
    cdef const Tx* tx = run.tx
    cdef TxError error = check_envelope(m.schedule, tx, m.block.chain_id, result)
    if error != TX_VALID:
        return error
    run.sender = world_account(m.world, &tx.sender)
    if run.sender == NULL or not world_knows_code(m.world, run.sender):
        return lacking(m)
    mark_reads(m, run)
    error = check_sender(m.schedule, tx, &run.options, run.sender, result)
    if error == TX_VALID:
        error = check_fees(m.schedule, &m.block.base_fee, tx, &run.options, result)
    if error == TX_VALID:
        error = check_payload(m.schedule, &m.block.blob_base_fee, tx, &run.options, result)
    if m.schedule.state_gas_version != 0:
        if error == TX_VALID:
            error = check_two_dimensions(m, run, block_gas_left, result)
    elif error == TX_VALID and tx.gas_limit > block_gas_left and not run.options.skip_block_gas:
        word_set(&result.have, block_gas_left)
        word_set(&result.want, tx.gas_limit)
        error = TX_BLOCK_GAS
    if error == TX_VALID and m.schedule.has_fee_vaults and not run.options.skip_l1_fee:
        error = price_l1(m, run)
    if error == TX_VALID and not run.options.skip_balance:
        error = check_funds(m.schedule, run, result)
    if error == TX_VALID and m.schedule.state_gas_version == 0:
        intrinsic_gas(m.schedule, tx, &run.intrinsic)
        error = check_gas(tx, &run.intrinsic, result)
    return error


cdef TxError check_funds(
    const Schedule* schedule, const TxRun* run, TxResult* result
) noexcept nogil:
    if not highest_cost(schedule, run.tx, &result.want):
        return TX_FUNDS_OVERFLOW
    if run.pays_l1_fee and (
        word_add_carry(&result.want, &result.want, &run.l1_fee)
        or word_add_carry(&result.want, &result.want, &run.operator_fee)
    ):
        return TX_FUNDS_OVERFLOW
    if not account_covers(run.sender, &result.want):
        word_copy(&result.have, &run.sender.balance)
        return TX_INSUFFICIENT_FUNDS
    return TX_VALID


# Computes the L1 data fee and the operator fee for the whole gas limit from parameters in the
# state.
cdef TxError price_l1(Machine* m, TxRun* run) noexcept nogil:
    cdef const Tx* tx = run.tx
    cdef Word gas
    if not l1_fees_read(m.schedule, m.world, &run.l1_fees):
        return lacking(m)
    run.pays_l1_fee = not run.options.skip_balance
    l1_data_fee(m.schedule, &run.l1_fees, tx.raw, tx.raw_size, &run.l1_fee, &gas)
    operator_fee(m.schedule, &run.l1_fees, tx.gas_limit, &run.operator_fee)
    return TX_VALID


# Begins a deposit, which was paid for on L1. Its mint stays even if the deposit fails. It is
# refused only if the block lacks gas; a deposit whose message cannot start uses its whole gas
# limit.
cdef TxError begin_deposit(
    Machine* m, TxRun* run, uint64_t block_gas_left, TxResult* result
) noexcept nogil:
    cdef const Tx* tx = run.tx
    cdef bint counts = m.schedule.deposits_report_gas or not tx.is_system
    if tx.gas_limit > block_gas_left and counts and not run.options.skip_block_gas:
        word_set(&result.have, block_gas_left)
        word_set(&result.want, tx.gas_limit)
        return TX_BLOCK_GAS
    run.is_deposit = True
    run.sender = world_account(m.world, &tx.sender)
    if run.sender == NULL or not world_add_balance(m.world, run.sender, &tx.mint):
        return lacking(m)
    result.deposit_nonce = run.sender.nonce
    intrinsic_gas(m.schedule, tx, &run.intrinsic)
    if can_begin(m.schedule, run, result):
        return TX_VALID if warm_up(m, run) and start_message(m, run, result) else lacking(m)
    run.never_ran = True
    m.output.size = 0
    result.status = OUT_OF_GAS
    if tx.is_create:
        result.has_created = True
        create_address(&result.created, &tx.sender, run.sender.nonce)
    return (
        TX_VALID if world_set_nonce(m.world, run.sender, run.sender.nonce + 1) else lacking(m)
    )


# Returns whether a deposit's message can start.
cdef bint can_begin(const Schedule* schedule, const TxRun* run, TxResult* result) noexcept nogil:
    cdef const Tx* tx = run.tx
    if tx.is_system and schedule.deposits_report_gas:
        return False
    if word_lt(&run.sender.balance, &tx.value):
        return False
    return (
        check_gas(tx, &run.intrinsic, result) == TX_VALID
        and check_initcode(schedule, tx, result) == TX_VALID
    )


# Computes the effective gas price and the tip per gas for the coinbase (EIP-1559).
cdef void set_prices(const Machine* m, TxRun* run) noexcept nogil:
    cdef const Tx* tx = run.tx
    word_copy(&run.price, &tx.max_fee)
    word_copy(&run.tip, &tx.max_fee)
    run.pays_coinbase = not (run.options.no_coinbase_payment or run.options.skip_balance)
    if not m.schedule.has_base_fee:
        return
    if is_free(tx, &run.options):
        run.pays_coinbase = False
        return
    if not word_add_carry(&run.price, &tx.max_priority_fee, &m.block.base_fee):
        if word_lt(&run.price, &tx.max_fee):
            word_copy(&run.tip, &tx.max_priority_fee)
            return
    word_copy(&run.price, &tx.max_fee)
    word_sub(&run.tip, &tx.max_fee, &m.block.base_fee)


# Charge the sender for the whole gas limit, and the blob fee, which is burnt (EIP-4844).
cdef bint buy_gas(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    cdef const Tx* tx = run.tx
    cdef Word cost, blobs
    set_prices(m, run)
    word_copy(&result.effective_price, &run.price)
    result.blob_gas_used = tx.blob_count * m.schedule.blob_gas_per_blob
    if run.options.skip_balance:
        if word_lt(&run.sender.balance, &tx.value):
            return world_set_balance(m.world, run.sender, &tx.value)
        return True
    # check_funds has computed products that are at least as large, so these do not overflow.
    word_times(&cost, &run.price, tx.gas_limit)
    if tx.blob_count != 0 and not (
        run.options.fees_optional and word_is_zero(&tx.max_fee_per_blob_gas)
    ):
        word_times(&blobs, &m.block.blob_base_fee, result.blob_gas_used)
        word_add(&cost, &cost, &blobs)
    if run.pays_l1_fee:
        word_add(&cost, &cost, &run.l1_fee)
        word_add(&cost, &cost, &run.operator_fee)
    return world_sub_balance(m.world, run.sender, &cost)


# Mark accounts and slots warm (EIP-2929, EIP-2930, EIP-3651). The interpreter knows the addresses
# of precompiles, which are always warm. The coinbase is always loaded because it is paid at the
# end.
cdef bint warm_up(Machine* m, TxRun* run) noexcept nogil:
    cdef World* w = m.world
    cdef const Tx* tx = run.tx
    cdef Account* a
    cdef uint32_t i
    cdef size_t slot = 0
    if w.defers_coinbase and not run.pays_coinbase:
        w.warm_coinbase = &m.block.coinbase if m.schedule.warm_coinbase else NULL
    elif run.pays_coinbase or m.schedule.warm_coinbase:
        run.coinbase = world_account(w, &m.block.coinbase)
        if run.coinbase == NULL:
            return False
        world_record_account(w, run.coinbase)
    world_record_account(w, run.sender)
    if not m.schedule.has_access_lists:
        return True
    world_warm_account(w, run.sender)
    if m.schedule.warm_coinbase and run.coinbase != NULL:
        world_warm_account(w, run.coinbase)
    if unlikely(w.reader.code != NULL):
        return list_unread(w, tx)
    for i in range(tx.access_count):
        a = world_account(w, &tx.access[i].address)
        if a == NULL:
            return False
        world_warm_account(w, a)
        if not warm_slots(w, a, tx.access_slots + slot, tx.access[i].slot_count):
            return False
        slot += tx.access[i].slot_count
    return True


cdef bint list_unread(World* w, const Tx* tx) noexcept nogil:
    cdef const Address* address
    cdef uint32_t i, j
    cdef size_t slot = 0
    for i in range(tx.access_count):
        address = &tx.access[i].address
        if not world_list(w, address, NULL):
            return False
        for j in range(tx.access[i].slot_count):
            if not world_list(w, address, &tx.access_slots[slot + j]):
                return False
        slot += tx.access[i].slot_count
    return True


cdef bint warm_slots(World* w, Account* a, const Word* keys, uint32_t count) noexcept nogil:
    cdef Slot* slot
    cdef uint32_t i
    for i in range(count):
        slot = world_slot(w, a, &keys[i])
        if slot == NULL:
            return False
        world_warm_slot(w, a, slot)
    return True


# Increments the nonce, applies the authorizations and starts the message.
cdef bint start_message(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    cdef const Tx* tx = run.tx
    cdef uint64_t gas = tx.gas_limit - run.intrinsic.gas
    cdef uint64_t nonce = run.sender.nonce
    cdef Message message
    memset(&message, 0, sizeof(message))
    run.frame_gas = HIGHEST_GAS if (gas >> 63) != 0 else <int64_t>gas
    if unlikely(m.schedule.state_gas_version != 0):
        split_gas(m, run)
    set_context(m, run)
    message.sender = tx.sender
    message.data = tx.data
    message.size = tx.size
    message.gas = run.frame_gas
    word_copy(&message.value, &tx.value)
    if tx.is_create and nonce + 1 == 0:
        message.kind = CREATE_MESSAGE
        return give_up_creation(m, run, &message, result)
    if not world_set_nonce(m.world, run.sender, nonce + 1):
        return False
    if tx.is_create:
        message.kind = CREATE_MESSAGE
        create_address(&message.recipient, &tx.sender, nonce)
        result.has_created = True
        result.created = message.recipient
    else:
        message.kind = CALL_MESSAGE
        message.recipient = tx.to
    if unlikely(m.schedule.state_gas_version != 0):
        if not pay_before_message(m, run, &message, result) or run.upfront.ran_out:
            return run.upfront.ran_out
    elif not tx.is_create and not prepare_call(m, run):
        return False
    # The machine marks a created address and the recipient's delegate warm.
    result.status = machine_start(m, &message)
    return result.status != NEEDS_STATE


# A creation with the highest nonce, possible only if the nonce rule is skipped: creates no contract
# and refunds the gas.
cdef bint give_up_creation(
    Machine* m, const TxRun* run, const Message* message, TxResult* result
) noexcept nogil:
    m.gas_left = run.frame_gas
    m.state_gas_left = run.reservoir
    m.state_gas_spilled = m.state_gas_used = m.state_gas_lost = 0
    m.output.size = 0
    result.status = NONCE_OVERFLOW
    return is_recorded(m, message, 0, NONCE_OVERFLOW)


# Records a message that ends before its first frame, because tracers show it like a frame. Returns
# False if memory is exhausted.
cdef bint is_recorded(
    Machine* m, const Message* message, int64_t gas_used, Status status
) noexcept nogil:
    if m.tracer == NULL or not m.tracer.calls:
        return True
    if record_message(m, message, gas_used, status) == RUNNING:
        return True
    m.world.need = WORLD_OUT_OF_MEMORY
    return False


# In forks with state gas, charges for the authorizations and the recipient. If the gas does not
# suffice, the transaction keeps only its nonce increment and fee. Returns False if state is
# missing: see world.need.
cdef bint pay_before_message(
    Machine* m, TxRun* run, Message* message, TxResult* result
) noexcept nogil:
    cdef Checkpoint before
    memset(&before, 0, sizeof(before))
    world_checkpoint(m.world, &before)
    if not run.tx.is_create and not prepare_call(m, run):
        return False
    if not run.upfront.ran_out and not pay_for_recipient(m, run, result):
        return False
    if run.upfront.ran_out:
        world_rollback(m.world, &before)
        m.output.size = 0
        result.status = OUT_OF_GAS
        if not is_recorded(m, message, message.gas, OUT_OF_GAS):
            return False
    message.gas = run.upfront.gas
    message.state_gas = run.upfront.reservoir
    return True


cdef bint prepare_call(Machine* m, TxRun* run) noexcept nogil:
    if not apply_authorizations(
        m.world, m.schedule, m.block.chain_id, run.tx, &run.upfront
    ):
        return False
    return run.upfront.ran_out or warm_recipient(m, run.tx)


cdef bint warm_recipient(Machine* m, const Tx* tx) noexcept nogil:
    cdef Account* to = world_account(m.world, &tx.to)
    if to == NULL:
        return False
    world_record_account(m.world, to)
    if m.schedule.has_access_lists:
        world_warm_account(m.world, to)
    return True


cdef void set_context(Machine* m, TxRun* run) noexcept nogil:
    run.context.origin = run.tx.sender
    word_copy(&run.context.gas_price, &run.price)
    run.context.blob_hashes = run.tx.blob_hashes
    run.context.blob_hash_count = run.tx.blob_count
    m.transaction = &run.context


# --- after the last frame ---

cdef TxError refund_and_pay(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    if m.schedule.state_gas_version != 0:
        refund_two_dimensions(m, run, result)
    else:
        set_gas_used(m, run, result)
    if run.options.post_exec_refund > result.gas_used:
        word_set(&result.have, result.gas_used)
        word_set(&result.want, run.options.post_exec_refund)
        return TX_POST_EXEC_REFUND
    result.gas_used -= run.options.post_exec_refund
    if pay(m, run, result):
        return TX_VALID
    return TX_NEEDS_STATE if m.world.need == WORLD_NEEDS_ACCOUNT else TX_OUT_OF_MEMORY


cdef bint pay(Machine* m, const TxRun* run, TxResult* result) noexcept nogil:
    cdef World* w = m.world
    cdef Word amount
    if not (run.options.skip_balance or run.is_deposit):
        word_times(&amount, &run.price, run.tx.gas_limit - result.gas_used)
        if not world_add_balance(w, run.sender, &amount):
            return False
    if run.pays_coinbase:
        # Even a payment of zero touches the coinbase (EIP-161).
        word_times(&amount, &run.tip, result.gas_used)
        if not world_add_balance(w, run.coinbase, &amount):
            return False
    if m.schedule.has_fee_vaults and not run.is_deposit and not pay_vaults(m, run, result):
        return False
    if unlikely(w.destroyed_count != 0) and not world_log_burns(w):
        return False
    result.log_count = w.log_count - result.first_log
    return world_end_transaction(w)


# Pays the L1 data fee, the base fee and the operator fee, and refunds the unused part of the
# operator fee.
cdef bint pay_vaults(Machine* m, const TxRun* run, const TxResult* result) noexcept nogil:
    cdef World* w = m.world
    cdef Word amount
    if run.pays_l1_fee and not credit(w, &L1_FEE_VAULT, &run.l1_fee):
        return False
    if run.pays_coinbase and m.schedule.has_base_fee:
        word_times(&amount, &m.block.base_fee, result.gas_used)
        if not credit(w, &BASE_FEE_VAULT, &amount):
            return False
    if not run.pays_l1_fee or m.schedule.operator_fee_version == 0:
        return True
    operator_fee(m.schedule, &run.l1_fees, result.gas_used, &amount)
    if not credit(w, &OPERATOR_FEE_VAULT, &amount):
        return False
    word_sub(&amount, &run.operator_fee, &amount)
    return world_add_balance(w, run.sender, &amount)


cdef bint credit(World* w, const Address* address, const Word* amount) noexcept nogil:
    cdef Account* account = world_account(w, address)
    return account != NULL and world_add_balance(w, account, amount)


# The refund is capped at a fraction of the gas used (EIP-3529); then the floor applies (EIP-7623).
cdef void set_gas_used(const Machine* m, const TxRun* run, TxResult* result) noexcept nogil:
    cdef uint64_t used = run.intrinsic.gas + <uint64_t>(run.frame_gas - m.gas_left)
    cdef uint64_t refund
    if run.is_deposit and (run.never_ran or not m.schedule.deposits_report_gas):
        used = run.tx.gas_limit
        if run.tx.is_system and not m.schedule.deposits_report_gas:
            used = 0
        result.gas_refunded = 0
        result.gas_before_refund = result.gas_used = used
        return
    refund = used // m.schedule.refund_quotient
    if m.world.refund < <int64_t>refund:
        refund = <uint64_t>m.world.refund if m.world.refund > 0 else 0
    result.gas_refunded = refund
    result.gas_before_refund = max(used, run.intrinsic.floor)
    result.gas_used = max(used - refund, run.intrinsic.floor)
