# Steps that the dispatch loop makes for every opcode: gas, stack bounds, jumps, saved registers.
#
# These functions are inlined into the loop with constants for cost, need and grow, so that the
# compiler keeps the locals in registers and folds the tests. `Frame` itself is declared in
# machine.pxd.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.primitives.cancellation cimport (
    CANCEL_REQUEST, LOOK_AFTER_GAS, LOOK_REQUEST, NO_REQUEST,
)
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.opcodes cimport ISZERO, JUMP, JUMPI, PUSH2
from fastevm.core.interpreter.status cimport (
    CANCELLED,
    INVALID_JUMP,
    NEEDS_STATE,
    OUT_OF_GAS,
    OUT_OF_MEMORY,
    RUNNING,
    STACK_OVERFLOW,
    STACK_UNDERFLOW,
    SUSPENDED,
    UNDEFINED_OPCODE,
    Status,
)
from fastevm.core.primitives.intrinsics cimport atomic_load_int, unlikely
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.records cimport WORLD_OUT_OF_MEMORY


# Checks the stack bounds, then charges gas; the order determines which halt is reported. The stack
# must have `need` items and space for `grow` more. Costs and prices are in gas.
cdef inline Status enter(
    int64_t* gas, Word* sp, Word* base, Word* limit, int64_t cost, int need, int grow
) noexcept nogil:
    if need > 0 and unlikely(sp + need > base):
        return STACK_UNDERFLOW
    if grow > 0 and unlikely(sp < limit + grow):
        return STACK_OVERFLOW
    gas[0] -= cost
    if unlikely(gas[0] < 0):
        return OUT_OF_GAS
    return RUNNING


# Like `enter`, for opcodes whose price or existence depends on the fork. A negative price means
# that the fork does not have the opcode.
cdef inline Status enter_priced(
    int64_t* gas, Word* sp, Word* base, Word* limit, int64_t price, int need, int grow
) noexcept nogil:
    if unlikely(price < 0):
        return UNDEFINED_OPCODE
    return enter(gas, sp, base, limit, price, need, grow)


# Like `enter`, for hosted ops (which may end with a request): saves the registers in the frame
# after charging the static price, which `restore` refunds. The op changes `f.gas`, and the loop
# reloads it afterwards.
cdef inline Status enter_hosted(
    Frame* f, const uint8_t* pc, Word* sp, int64_t gas, Word* base, Word* limit,
    int64_t price, int need, int grow,
) noexcept nogil:
    f.pc = pc
    f.sp = sp
    f.gas = gas - price
    if unlikely(price < 0):
        return UNDEFINED_OPCODE
    if need > 0 and unlikely(sp + need > base):
        return STACK_UNDERFLOW
    if grow > 0 and unlikely(sp < limit + grow):
        return STACK_OVERFLOW
    if unlikely(f.gas < 0):
        return OUT_OF_GAS
    if unlikely(f.machine.suspend_always):
        f.machine.suspend_mark = not f.machine.suspend_mark
        return SUSPENDED if f.machine.suspend_mark else RUNNING
    return RUNNING


# Refunds the static price of the op at pc after a request: the op is executed again from its start.
cdef inline void restore(Frame* f, Status status) noexcept nogil:
    if status == NEEDS_STATE or status == SUSPENDED:
        f.gas += f.schedule.gas[f.pc[0]]


# Pauses at a back-edge at the host's request. Only the gas has changed, and the op is executed
# again from its start. `restore` refunds the static price of the op at pc; this function refunds
# the other ops that the loop fused with it.
cdef inline Status pause_at_jump(Frame* f, int landing) noexcept nogil:
    cdef uint8_t op = f.pc[0]
    if atomic_load_int(<const int*>f.cancel) == CANCEL_REQUEST:
        return CANCELLED
    if op == JUMP:
        f.gas += landing
    elif op == PUSH2:
        f.gas += f.schedule.gas[f.pc[3]]  # price of the fused JUMP or JUMPI
        if f.pc[3] == JUMP:
            f.gas += landing
    elif op == ISZERO:
        f.gas += f.schedule.gas[<int>PUSH2] + f.schedule.gas[<int>JUMPI]
    return SUSPENDED


# Returns the status of an op whose read from the world returned NULL or False.
cdef inline Status missing(const Frame* f) noexcept nogil:
    return OUT_OF_MEMORY if f.world.need == WORLD_OUT_OF_MEMORY else NEEDS_STATE


# Returns the status of an op after a journaled write: RUNNING if `done`, else OUT_OF_MEMORY.
cdef inline Status written(bint done) noexcept nogil:
    return OUT_OF_MEMORY if unlikely(not done) else RUNNING


cdef inline bint is_jumpdest(const Frame* f, uint64_t at) noexcept nogil:
    return at < f.code_size and ((f.jumpdests[at >> 3] >> (at & 7)) & 1) != 0


# Whether the host requests a pause or the end at this back-edge. `gas`: left in the frame.
cdef inline bint is_stopped(const Frame* f, int64_t gas) noexcept nogil:
    cdef int request = atomic_load_int(<const int*>f.cancel)
    return unlikely(request != NO_REQUEST) and (
        request != LOOK_REQUEST or f.gas_start - gas > LOOK_AFTER_GAS
    )


# Returns RUNNING if `at` (an offset in the code) is a JUMPDEST, else INVALID_JUMP. A jump backwards
# also checks the cancel flag of the host. `gas`: left in the frame.
cdef inline Status check_jump(
    const Frame* f, uint64_t at, const uint8_t* pc, int64_t gas
) noexcept nogil:
    if unlikely(not is_jumpdest(f, at)):
        return INVALID_JUMP
    if f.code + at <= pc and is_stopped(f, gas):
        return CANCELLED
    return RUNNING
