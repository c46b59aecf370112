# Frame operations of every opcode in the dispatch loop: gas, stack bounds, jumps, saved registers.
#
# These functions are inlined into the loop with constants for cost, need and grow, so that the
# compiler keeps the locals in registers and folds the tests. `Frame` itself is declared in
# machine.pxd.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.primitives.cancellation cimport CANCEL_REQUEST
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


# Stack bounds, then gas (the order determines which halt is reported). Requires `need` items and
# space for `grow` more.
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


# For opcodes whose price or existence depends on the fork: a negative price means undefined.
cdef inline Status enter_priced(
    int64_t* gas, Word* sp, Word* base, Word* limit, int64_t price, int need, int grow
) noexcept nogil:
    if unlikely(price < 0):
        return UNDEFINED_OPCODE
    return enter(gas, sp, base, limit, price, need, grow)


# For hosted ops: saves the registers after charging the static price; `restore` reverts that. From
# here on the frame's gas is authoritative, and the loop reloads it after the op.
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


# A request refunds the static price, because the op is executed again from its start.
cdef inline void restore(Frame* f, Status status) noexcept nogil:
    if status == NEEDS_STATE or status == SUSPENDED:
        f.gas += f.schedule.gas[f.pc[0]]


# Pauses at a back-edge because the host asked for it: only gas has changed, and the op runs again
# from its beginning. `restore` refunds the static price of the op at pc; this refunds the rest.
cdef inline Status pause_at_jump(Frame* f, int landing) noexcept nogil:
    cdef uint8_t op = f.pc[0]
    if atomic_load_int(<const int*>f.cancel) == CANCEL_REQUEST:
        return CANCELLED
    if op == JUMP:
        f.gas += landing
    elif op == PUSH2:
        f.gas += f.schedule.gas[f.pc[3]]  # of JUMP or JUMPI
        if f.pc[3] == JUMP:
            f.gas += landing
    elif op == ISZERO:
        f.gas += f.schedule.gas[<int>PUSH2] + f.schedule.gas[<int>JUMPI]
    return SUSPENDED


# The status after a read returned NULL or False.
cdef inline Status missing(const Frame* f) noexcept nogil:
    return OUT_OF_MEMORY if f.world.need == WORLD_OUT_OF_MEMORY else NEEDS_STATE


# RUNNING if a journaled write succeeded.
cdef inline Status written(bint done) noexcept nogil:
    return OUT_OF_MEMORY if unlikely(not done) else RUNNING


cdef inline bint is_jumpdest(const Frame* f, uint64_t at) noexcept nogil:
    return at < f.code_size and ((f.jumpdests[at >> 3] >> (at & 7)) & 1) != 0


# Whether code may jump from pc to `at`; back-edges check the host's cancel flag.
cdef inline Status check_jump(const Frame* f, uint64_t at, const uint8_t* pc) noexcept nogil:
    if unlikely(not is_jumpdest(f, at)):
        return INVALID_JUMP
    if f.code + at <= pc and unlikely(atomic_load_int(<const int*>f.cancel) != 0):
        return CANCELLED
    return RUNNING
