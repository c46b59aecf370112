"""The gas of a transaction in two dimensions (EIP-8037, EIP-2780, EIP-7778).

Version 1 (a devnet of April 2026) charges the state gas of creation and authorizations with the
intrinsic gas; version 2 (Amsterdam) charges it before the first frame, once the state is known.
"""
from libc.stdint cimport int64_t, uint32_t, uint64_t

from fastevm.core.execution.transaction.delegation cimport pay_upfront
from fastevm.core.execution.transaction.intrinsic cimport intrinsic_gas
from fastevm.core.execution.transaction.transact cimport TxRun
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TX_BLOCK_GAS, TX_VALID, TxError, TxResult
from fastevm.core.execution.transaction.transaction_rules cimport check_gas, check_gas_caps
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.state_gas cimport state_byte_price
from fastevm.core.interpreter.status cimport (
    ADDRESS_COLLISION, CALL_TOO_DEEP, INSUFFICIENT_BALANCE, NONCE_OVERFLOW, REVERTED, STOPPED,
    Status,
)
from fastevm.core.precompiles.registry cimport precompile_at
from fastevm.core.primitives.intrinsics cimport u128
from fastevm.core.primitives.word cimport word_is_zero, word_set
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport (
    account_is_dead, world_account, world_is_cold_account, world_knows_code, world_record_account,
)


cdef enum:
    DEVNET_OF_APRIL = 1


cdef int64_t HIGHEST_GAS = 0x7fffffffffffffff
cdef uint64_t HIGHEST = 0xffffffffffffffff


# ----------------------------------------------------------------------------------------------
# before the first frame

cdef uint64_t intrinsic_state_gas(const Machine* m, const Tx* tx) noexcept nogil:
    cdef const Schedule* s = m.schedule
    cdef u128 bytes = <u128>(s.account_state_bytes if tx.is_create else 0)
    cdef u128 amount
    if s.state_gas_version != DEVNET_OF_APRIL:
        return 0
    bytes += <u128>tx.authorization_count * <u128>(
        s.account_state_bytes + s.delegation_state_bytes
    )
    amount = bytes * <u128>state_byte_price(s, m.block.gas_limit)
    return HIGHEST if amount > <u128>HIGHEST else <uint64_t>amount


cdef TxError check_two_dimensions(
    const Machine* m, TxRun* run, uint64_t regular_left, TxResult* result
) noexcept nogil:
    cdef const Tx* tx = run.tx
    cdef TxError error
    intrinsic_gas(m.schedule, tx, &run.intrinsic)
    run.intrinsic.state = intrinsic_state_gas(m, tx)
    if not run.options.skip_gas_cap:
        error = check_gas_caps(m.schedule, tx, &run.intrinsic, result)
        if error != TX_VALID:
            return error
    error = check_gas(tx, &run.intrinsic, result)
    if error != TX_VALID:
        return error
    set_needs(m, run, result)
    if run.options.skip_block_gas:
        return TX_VALID
    return check_room(m.block.gas_limit, regular_left, run.options.block_state_gas, result)


cdef void set_needs(const Machine* m, const TxRun* run, TxResult* result) noexcept nogil:
    """Sets the gas that the block must have left in each dimension.

    Each amount is computed as if the transaction used only that dimension.
    """
    cdef uint64_t cap = <uint64_t>m.schedule.tx_gas_cap
    result.needs_regular_gas = run.tx.gas_limit - run.intrinsic.state
    result.needs_state_gas = run.tx.gas_limit
    if m.schedule.state_gas_version == DEVNET_OF_APRIL:
        result.needs_state_gas -= run.intrinsic.gas
    if cap != 0 and result.needs_regular_gas > cap:
        result.needs_regular_gas = cap


cdef TxError check_room(
    uint64_t limit, uint64_t regular_left, uint64_t state_used, TxResult* result
) noexcept nogil:
    cdef uint64_t state_left = limit - state_used if state_used < limit else 0
    cdef uint64_t regular = result.needs_regular_gas, state = result.needs_state_gas
    if regular <= regular_left and state <= state_left:
        return TX_VALID
    word_set(&result.have, regular_left if regular > regular_left else state_left)
    word_set(&result.want, regular if regular > regular_left else state)
    return TX_BLOCK_GAS


cdef void split_gas(const Machine* m, TxRun* run) noexcept nogil:
    cdef uint64_t rest = run.tx.gas_limit - run.intrinsic.gas - run.intrinsic.state
    cdef uint64_t cap = <uint64_t>m.schedule.tx_gas_cap
    cdef uint64_t gas = rest
    if cap != 0:
        cap = cap - run.intrinsic.gas if cap > run.intrinsic.gas else 0
        gas = min(rest, cap)
    if (gas >> 63) != 0:
        gas = <uint64_t>HIGHEST_GAS
    rest -= gas
    run.frame_gas = <int64_t>gas
    run.reservoir = HIGHEST_GAS if (rest >> 63) != 0 else <int64_t>rest
    run.upfront.gas = run.frame_gas
    run.upfront.reservoir = run.reservoir
    run.upfront.byte_price = state_byte_price(m.schedule, m.block.gas_limit)


cdef bint pay_for_recipient(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    cdef const Schedule* s = m.schedule
    cdef const Tx* tx = run.tx
    cdef Account* to = world_account(m.world, &result.created if tx.is_create else &tx.to)
    if to == NULL:
        return False
    if s.state_gas_version == DEVNET_OF_APRIL:
        return True
    # Recorded before the charge: the access list has a creation's address even if the charge fails.
    world_record_account(m.world, to)
    if account_is_dead(to) and (tx.is_create or not word_is_zero(&tx.value)):
        run.recipient_charge = s.account_state_bytes * run.upfront.byte_price
        pay_upfront(&run.upfront, 0, run.recipient_charge)
    if tx.is_create or to.code == NULL or not to.code.is_delegation or run.upfront.ran_out:
        return True
    return pay_for_delegate(m, run, to)


cdef bint pay_for_delegate(Machine* m, TxRun* run, const Account* to) noexcept nogil:
    cdef Account* delegate
    cdef int64_t cost = m.schedule.warm_access_cost
    if not world_knows_code(m.world, to):
        return False
    delegate = world_account(m.world, &to.code.delegate)
    if delegate == NULL:
        return False
    if world_is_cold_account(m.world, delegate) and (
        precompile_at(m.schedule, &delegate.address) == 0
    ):
        cost += m.schedule.cold_account_surcharge
    pay_upfront(&run.upfront, cost, 0)
    return True


# ----------------------------------------------------------------------------------------------
# after the last frame

cdef void refund_two_dimensions(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    cdef uint64_t given = (
        run.intrinsic.gas + run.intrinsic.state + <uint64_t>run.frame_gas + <uint64_t>run.reservoir
    )
    cdef uint64_t spent, refund, state
    if m.schedule.state_gas_version == DEVNET_OF_APRIL:
        refund_devnet(m, run, result)
    else:
        refund_frames(m, run, result)
    spent = given - <uint64_t>m.gas_left - <uint64_t>m.state_gas_left
    refund = spent // <uint64_t>m.schedule.refund_quotient
    if m.world.refund < <int64_t>refund:
        refund = <uint64_t>m.world.refund if m.world.refund > 0 else 0
    state = result.block_state_gas
    result.gas_refunded = refund
    result.gas_before_refund = max(spent, run.intrinsic.floor)
    result.gas_used = max(spent - refund, run.intrinsic.floor)
    if m.schedule.state_gas_version == DEVNET_OF_APRIL:
        spent += <uint64_t>(run.upfront.reservoir - run.reservoir)
        state += <uint64_t>m.state_gas_lost
    result.block_gas = max(spent - state, run.intrinsic.floor)


cdef bint returns_gas(Status status) noexcept nogil:
    return (
        status == REVERTED or status == CALL_TOO_DEEP or status == INSUFFICIENT_BALANCE
        or status == NONCE_OVERFLOW
    )


cdef void refund_frames(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    """Computes the gas that the frames and the charges before them used. A failed first frame
    refunds its state gas.
    """
    cdef int64_t spilled = run.upfront.spilled
    cdef int64_t part
    if run.upfront.ran_out:
        m.gas_left = 0
        m.state_gas_left = run.reservoir
        result.block_state_gas = 0
        return
    if result.status == STOPPED:
        spilled += m.state_gas_spilled
    elif run.recipient_charge != 0:
        part = min(run.recipient_charge, spilled)
        spilled -= part
        m.state_gas_left += run.recipient_charge - part
        if returns_gas(result.status):
            m.gas_left += part
    result.block_state_gas = <uint64_t>(run.reservoir - m.state_gas_left + spilled)


cdef void refund_devnet(Machine* m, TxRun* run, TxResult* result) noexcept nogil:
    if result.status == ADDRESS_COLLISION:
        m.state_gas_lost = run.frame_gas + m.state_gas_left
        m.state_gas_left = 0
    elif result.status == STOPPED:
        give_back_destroyed(m)
    result.block_state_gas = run.intrinsic.state + <uint64_t>m.state_gas_used


cdef void give_back_destroyed(Machine* m) noexcept nogil:
    """Refunds the state gas of contracts that were created and destroyed in this transaction."""
    cdef const Schedule* s = m.schedule
    cdef const Account* a
    cdef int64_t bytes, amount
    cdef size_t i
    for i in range(m.world.destroyed_count):
        a = m.world.destroyed[i]
        bytes = s.account_state_bytes + s.slot_state_bytes * slots_in_use(a)
        if a.code != NULL:
            bytes += a.code.size
        amount = min(bytes * state_byte_price(s, m.block.gas_limit), m.state_gas_used)
        m.state_gas_used -= amount
        m.state_gas_left += amount


cdef int64_t slots_in_use(const Account* a) noexcept nogil:
    cdef int64_t count = 0
    cdef uint32_t i
    if a.slot_mask != 0:
        for i in range(a.slot_mask + 1):
            if a.slots[i] != NULL and not word_is_zero(&a.slots[i].current):
                count += 1
    return count
