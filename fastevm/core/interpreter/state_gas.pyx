"""State gas (EIP-8037): charges, and merging the reservoirs of two frames.

Version 1 counts the state gas that a frame used and the credits that it received. If an inner frame
fails, its credits are deducted again, and that gas is lost, as the public tests of that devnet
require. Version 2 counts the state gas that a frame paid from regular gas (`spilled`). A refund
goes to regular gas first, up to that amount.
"""

from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.frame cimport written
from fastevm.core.interpreter.machine cimport (
    CREATE2_MESSAGE, CREATE_MESSAGE, Frame, Machine, StateGas,
)
from fastevm.core.interpreter.status cimport OUT_OF_GAS, RUNNING, STOPPED, Status
from fastevm.core.primitives.intrinsics cimport clz64, u128
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport SSTORE_CREATE, SSTORE_NOOP, SSTORE_RESTORE_ZERO, Schedule
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.world cimport (
    account_is_dead, world_add_refund, world_record_account, world_set_slot,
)


cdef enum:
    DEVNET_OF_APRIL = 1
    AMSTERDAM = 2
    # Version 1 prices a byte of state so that blocks which create nothing but state add 100 GiB a
    # year. The sum of price and PRICE_OFFSET is rounded down to five significant bits.
    BLOCKS_PER_YEAR = 2_628_000
    PRICE_OFFSET = 9_578
    SIGNIFICANT_BITS = 5


cdef uint64_t TARGET_GROWTH = <uint64_t>2 * 100 * (<uint64_t>1 << 30)


cdef int64_t state_byte_price(const Schedule* s, uint64_t gas_limit) noexcept nogil:
    cdef uint64_t raw
    cdef int shift
    if s.state_byte_cost != 0:
        return s.state_byte_cost
    raw = <uint64_t>(
        (<u128>gas_limit * <u128>BLOCKS_PER_YEAR + <u128>(TARGET_GROWTH - 1)) // <u128>TARGET_GROWTH
    ) + PRICE_OFFSET
    shift = 64 - clz64(raw) - SIGNIFICANT_BITS
    raw = (raw >> shift) << shift
    return <int64_t>(raw - PRICE_OFFSET) if raw > PRICE_OFFSET else 1


cdef inline StateGas* state_gas_of(const Frame* f) noexcept nogil:
    return &f.machine.state_gas[f - f.machine.frames]


cdef void begin_state_gas(Machine* m, int64_t reservoir) noexcept nogil:
    m.state_byte_cost = state_byte_price(m.schedule, m.block.gas_limit)
    m.state_gas_lost = 0
    begin_record(&m.state_gas[0], reservoir, 0)


cdef void begin_record(StateGas* s, int64_t reservoir, int64_t charged) noexcept nogil:
    s.left = s.at_start = reservoir
    s.spilled = s.used = s.credited = s.pending = 0
    s.charged = charged


cdef bint charge_state(Frame* f, int64_t amount) noexcept nogil:
    cdef StateGas* s = state_gas_of(f)
    cdef int64_t missing
    if s.left >= amount:
        s.left -= amount
    else:
        missing = amount - s.left
        if f.gas < missing:
            return False
        f.gas -= missing
        s.spilled += missing
        s.left = 0
    s.used += amount
    return True


cdef void refund_state_gas(Frame* f, int64_t amount) noexcept nogil:
    """Refunds state gas for state that was charged but does not remain."""
    cdef StateGas* s = state_gas_of(f)
    cdef int64_t part
    if f.schedule.state_gas_version == DEVNET_OF_APRIL:
        credit(s, amount)
        return
    part = min(amount, s.spilled)
    f.gas += part
    s.spilled -= part
    s.left += amount - part


cdef void credit(StateGas* s, int64_t amount) noexcept nogil:
    """Credits at most the state gas that the frame used. The rest stays `pending`: an ancestor paid
    it.
    """
    cdef int64_t part = min(amount, s.used)
    s.left += part
    s.used -= part
    s.credited += part
    s.pending += amount - part


# ----------------------------------------------------------------------------------------------
# entering a frame

cdef bint pass_reservoir(Frame* f, int64_t charge) noexcept nogil:
    cdef StateGas* s = state_gas_of(f)
    if charge != 0 and not charge_state(f, charge):
        return False
    begin_record(s + 1, s.left, charge)
    s.left = 0
    return True


cdef int64_t new_account_charge(const Frame* f) noexcept nogil:
    return f.schedule.account_state_bytes * f.machine.state_byte_cost


cdef bint begin_creation(Frame* f, Account* created, bint refused) noexcept nogil:
    if f.schedule.state_gas_version == DEVNET_OF_APRIL:
        return pass_reservoir(f, new_account_charge(f))
    if refused:
        return pass_reservoir(f, 0)
    world_record_account(f.world, created)
    return pass_reservoir(f, new_account_charge(f) if account_is_dead(created) else 0)


# ----------------------------------------------------------------------------------------------
# storage

cdef Status store_slot(Frame* f, Slot* slot, int change, const Word* value) noexcept nogil:
    cdef const Schedule* s = f.schedule
    cdef int64_t amount = s.slot_state_bytes * f.machine.state_byte_cost
    if change == SSTORE_RESTORE_ZERO and s.state_gas_version == DEVNET_OF_APRIL:
        refund_state_gas(f, amount)
    f.gas -= s.sstore_cost[change]
    if f.gas < 0:
        return OUT_OF_GAS
    if change == SSTORE_CREATE and not charge_state(f, amount):
        return OUT_OF_GAS
    if change == SSTORE_RESTORE_ZERO and s.state_gas_version == AMSTERDAM:
        refund_state_gas(f, amount)
    world_add_refund(f.world, s.sstore_refund[change])
    if change == SSTORE_NOOP:
        return RUNNING
    return written(world_set_slot(f.world, f.account, slot, value))


# ----------------------------------------------------------------------------------------------
# leaving a frame

cdef void leave_state_gas(Machine* m, Frame* f, Status status) noexcept nogil:
    cdef StateGas* s = state_gas_of(f)
    if f.schedule.state_gas_version == DEVNET_OF_APRIL:
        leave_devnet_frame(m, f, s, status == STOPPED)
        return
    if status != STOPPED:
        s.left = s.at_start
        f.gas += s.spilled   # consumed with the remaining gas if the frame halted
        s.spilled = 0
    if m.depth == 1:
        m.state_gas_left = s.left
        m.state_gas_spilled = s.spilled
        return
    merge_reservoirs(f - 1, s - 1, s)
    if status != STOPPED:
        refund_state_gas(f - 1, s.charged)


cdef void merge_reservoirs(Frame* caller, StateGas* into, const StateGas* s) noexcept nogil:
    """Gives the callee's reservoir back to the caller, whose reservoir was empty during the call.
    """
    cdef int64_t part
    into.left = s.left
    into.spilled += s.spilled
    part = min(into.spilled, into.left)
    caller.gas += part
    into.spilled -= part
    into.left -= part


cdef void leave_devnet_frame(Machine* m, Frame* f, StateGas* s, bint succeeded) noexcept nogil:
    cdef StateGas* into = s - 1
    if m.depth == 1:
        if not succeeded:
            s.left += s.used
            s.used = 0
        m.state_gas_left = s.left
        m.state_gas_used = s.used
        return
    if succeeded:
        into.left += s.left
        into.used += s.used
        into.credited += s.credited
        credit(into, s.pending)
        return
    into.left += s.used + s.left - s.credited
    m.state_gas_lost += s.credited
    if into.left < 0:
        m.state_gas_lost += into.left
        into.left = 0
    if f.kind == CREATE_MESSAGE or f.kind == CREATE2_MESSAGE:
        credit(into, s.charged)
