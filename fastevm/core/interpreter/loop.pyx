"""The dispatch: one short arm per opcode, compiled twice, untraced and traced.

An arm pays and checks the stack with constants, calls its op, moves sp and pc, and jumps straight
to the arm of the next op (dispatch.h). The untraced loop looks ahead: a jump lands past its
JUMPDEST, and PUSH2 JUMP, PUSH2 JUMPI and ISZERO PUSH2 JUMPI are one step. The traced loop records
every op.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.interpreter.frame cimport (
    check_jump, enter, enter_hosted, enter_priced, pause_at_jump, restore,
)
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.opcodes cimport (
    STOP, ADD, MUL, SUB, DIV, SDIV, MOD, SMOD, ADDMOD, MULMOD, EXP, SIGNEXTEND, LT, GT, SLT,
    SGT, EQ, ISZERO, AND, OR, XOR, NOT, BYTE, SHL, SHR, SAR, CLZ, KECCAK256, ADDRESS, BALANCE,
    ORIGIN, CALLER, CALLVALUE, CALLDATALOAD, CALLDATASIZE, CALLDATACOPY, CODESIZE, CODECOPY,
    GASPRICE, EXTCODESIZE, EXTCODECOPY, RETURNDATASIZE, RETURNDATACOPY, EXTCODEHASH,
    BLOCKHASH, COINBASE, TIMESTAMP, NUMBER, PREVRANDAO, GASLIMIT, CHAINID, SELFBALANCE,
    BASEFEE, BLOBHASH, BLOBBASEFEE, SLOTNUM, POP, MLOAD, MSTORE, MSTORE8, SLOAD, SSTORE, JUMP,
    JUMPI, PC, MSIZE, GAS, JUMPDEST, TLOAD, TSTORE, MCOPY, PUSH0, PUSH1, PUSH2, PUSH3, PUSH4, PUSH5,
    PUSH6, PUSH7, PUSH8, PUSH9, PUSH10, PUSH11, PUSH12, PUSH13, PUSH14, PUSH15, PUSH16,
    PUSH17, PUSH18, PUSH19, PUSH20, PUSH21, PUSH22, PUSH23, PUSH24, PUSH25, PUSH26, PUSH27,
    PUSH28, PUSH29, PUSH30, PUSH31, PUSH32, DUP1, DUP2, DUP3, DUP4, DUP5, DUP6, DUP7, DUP8,
    DUP9, DUP10, DUP11, DUP12, DUP13, DUP14, DUP15, DUP16, SWAP1, SWAP2, SWAP3, SWAP4, SWAP5,
    SWAP6, SWAP7, SWAP8, SWAP9, SWAP10, SWAP11, SWAP12, SWAP13, SWAP14, SWAP15, SWAP16, LOG0,
    LOG1, LOG2, LOG3, LOG4, DUPN, SWAPN, EXCHANGE, CREATE, CALL, CALLCODE, RETURN,
    DELEGATECALL, CREATE2, STATICCALL, REVERT, INVALID, SELFDESTRUCT,
)
from fastevm.core.interpreter.ops.arithmetic cimport (
    op_add, op_addmod, op_div, op_exp, op_mod, op_mul, op_mulmod, op_sdiv, op_signextend,
    op_smod, op_sub,
)
from fastevm.core.interpreter.ops.block cimport (
    op_basefee, op_blobbasefee, op_blockhash, op_chainid, op_coinbase, op_gaslimit, op_number,
    op_prevrandao, op_slotnum, op_timestamp,
)
from fastevm.core.interpreter.ops.calls cimport (
    op_call, op_callcode, op_create, op_create2, op_delegatecall, op_selfdestruct,
    op_staticcall,
)
from fastevm.core.interpreter.ops.comparison cimport (
    op_and, op_byte, op_clz, op_eq, op_gt, op_iszero, op_lt, op_not, op_or, op_sar, op_sgt,
    op_shl, op_shr, op_slt, op_xor,
)
from fastevm.core.interpreter.ops.environment cimport (
    op_address, op_balance, op_blobhash, op_calldatacopy, op_calldataload, op_calldatasize,
    op_caller, op_callvalue, op_codecopy, op_codesize, op_extcodecopy, op_extcodehash,
    op_extcodesize, op_gasprice, op_origin, op_returndatacopy, op_returndatasize,
    op_selfbalance,
)
from fastevm.core.interpreter.ops.flow cimport (
    op_gas, op_jump, op_pc, op_return, op_revert,
)
from fastevm.core.interpreter.ops.hashing cimport op_keccak256
from fastevm.core.interpreter.ops.logging cimport op_log
from fastevm.core.interpreter.ops.memory cimport (
    op_mcopy, op_mload, op_msize, op_mstore, op_mstore8,
)
from fastevm.core.interpreter.ops.stack cimport (
    op_dup, op_dupn, op_exchange, op_push0, op_push1, op_push16, op_push24, op_push32, op_push8,
    op_swap, op_swapn,
)
from fastevm.core.interpreter.ops.storage cimport (
    op_sload, op_sstore, op_tload, op_tstore,
)
from fastevm.core.interpreter.recorder cimport forget_step, record_step, settle_step
from fastevm.core.interpreter.status cimport (
    CANCELLED,
    ENTER_CALL,
    INVALID_OPCODE,
    NEEDS_STATE,
    OUT_OF_GAS,
    OUT_OF_MEMORY,
    RUNNING,
    STOPPED,
    SUSPENDED,
    UNDEFINED_OPCODE,
    Status,
)
from fastevm.core.primitives.intrinsics cimport likely, load16_big, unlikely
from fastevm.core.primitives.word cimport Word, word_is_zero


cdef extern from "fastevm/core/interpreter/dispatch.h" nogil:
    void LABEL_TABLE "FE_LABEL_TABLE"()
    void LABEL "FE_LABEL"(int op)
    void UNDEFINED_LABEL "FE_UNDEFINED_LABEL"()
    void GOTO "FE_GOTO"(const uint8_t* pc, bint threaded)


cdef struct Untraced:
    char unused


cdef struct Traced:
    char unused


ctypedef fused Tracing:
    Untraced
    Traced


cdef Status run(Frame* f, Tracing* tracing) noexcept nogil:
    # `landing` is the gas and the length of a JUMPDEST, which the untraced loop jumps past.
    cdef bint threaded = Tracing is Untraced
    cdef int landing = 1 if Tracing is Untraced else 0
    cdef const uint8_t* pc = f.pc
    cdef Word* sp = f.sp
    cdef int64_t gas = f.gas
    cdef Word* base = f.base
    cdef Word* limit = f.limit
    cdef Status status = RUNNING
    cdef uint64_t at
    cdef uint8_t op
    LABEL_TABLE()
    while True:
        if Tracing is Traced:
            f.pc = pc
            f.sp = sp
            f.gas = gas
            settle_step(f.machine, gas, RUNNING)
            status = record_step(f.machine, f)
            if unlikely(status):
                break
        op = pc[0]
        if op == STOP:
            LABEL(0x00)
            status = enter(&gas, sp, base, limit, 0, 0, 0)
            if unlikely(status):
                break
            f.machine.output.size = 0
            status = STOPPED
            break
        elif op == ADD:
            LABEL(0x01)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_add(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == MUL:
            LABEL(0x02)
            status = enter(&gas, sp, base, limit, 5, 2, 0)
            if unlikely(status):
                break
            op_mul(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SUB:
            LABEL(0x03)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_sub(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DIV:
            LABEL(0x04)
            status = enter(&gas, sp, base, limit, 5, 2, 0)
            if unlikely(status):
                break
            op_div(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SDIV:
            LABEL(0x05)
            status = enter(&gas, sp, base, limit, 5, 2, 0)
            if unlikely(status):
                break
            op_sdiv(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == MOD:
            LABEL(0x06)
            status = enter(&gas, sp, base, limit, 5, 2, 0)
            if unlikely(status):
                break
            op_mod(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SMOD:
            LABEL(0x07)
            status = enter(&gas, sp, base, limit, 5, 2, 0)
            if unlikely(status):
                break
            op_smod(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == ADDMOD:
            LABEL(0x08)
            status = enter(&gas, sp, base, limit, 8, 3, 0)
            if unlikely(status):
                break
            op_addmod(sp)
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == MULMOD:
            LABEL(0x09)
            status = enter(&gas, sp, base, limit, 8, 3, 0)
            if unlikely(status):
                break
            op_mulmod(sp)
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == EXP:
            LABEL(0x0a)
            status = enter(&gas, sp, base, limit, 10, 2, 0)
            if unlikely(status):
                break
            gas = op_exp(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SIGNEXTEND:
            LABEL(0x0b)
            status = enter(&gas, sp, base, limit, 5, 2, 0)
            if unlikely(status):
                break
            op_signextend(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == LT:
            LABEL(0x10)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_lt(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == GT:
            LABEL(0x11)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_gt(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SLT:
            LABEL(0x12)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_slt(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SGT:
            LABEL(0x13)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_sgt(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == EQ:
            LABEL(0x14)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_eq(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == ISZERO:
            LABEL(0x15)
            status = enter(&gas, sp, base, limit, 3, 1, 0)
            if unlikely(status):
                break
            if Tracing is Untraced and pc[1] == PUSH2 and pc[4] == JUMPI and likely(sp > limit):
                gas -= 3 + 10  # PUSH2 and JUMPI; the next op finds it negative
                if word_is_zero(&sp[0]):
                    at = load16_big(pc + 2)
                    status = check_jump(f, at, pc)
                    if unlikely(status):
                        break
                    gas -= landing
                    pc = f.code + at + landing
                else:
                    pc += 5
                sp += 1
                GOTO(pc, threaded)
                continue
            op_iszero(sp)
            pc += 1
            GOTO(pc, threaded)
        elif op == AND:
            LABEL(0x16)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_and(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == OR:
            LABEL(0x17)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_or(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == XOR:
            LABEL(0x18)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_xor(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == NOT:
            LABEL(0x19)
            status = enter(&gas, sp, base, limit, 3, 1, 0)
            if unlikely(status):
                break
            op_not(sp)
            pc += 1
            GOTO(pc, threaded)
        elif op == BYTE:
            LABEL(0x1a)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_byte(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SHL:
            LABEL(0x1b)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x1b], 2, 0)
            if unlikely(status):
                break
            op_shl(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SHR:
            LABEL(0x1c)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x1c], 2, 0)
            if unlikely(status):
                break
            op_shr(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SAR:
            LABEL(0x1d)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x1d], 2, 0)
            if unlikely(status):
                break
            op_sar(sp)
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CLZ:
            LABEL(0x1e)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x1e], 1, 0)
            if unlikely(status):
                break
            op_clz(sp)
            pc += 1
            GOTO(pc, threaded)
        elif op == KECCAK256:
            LABEL(0x20)
            status = enter(&gas, sp, base, limit, 30, 2, 0)
            if unlikely(status):
                break
            gas = op_keccak256(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == ADDRESS:
            LABEL(0x30)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_address(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == BALANCE:
            LABEL(0x31)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x31], 1, 0)
            if likely(status == RUNNING):
                status = op_balance(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == ORIGIN:
            LABEL(0x32)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_origin(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CALLER:
            LABEL(0x33)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_caller(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CALLVALUE:
            LABEL(0x34)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_callvalue(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CALLDATALOAD:
            LABEL(0x35)
            status = enter(&gas, sp, base, limit, 3, 1, 0)
            if unlikely(status):
                break
            op_calldataload(f, sp)
            pc += 1
            GOTO(pc, threaded)
        elif op == CALLDATASIZE:
            LABEL(0x36)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_calldatasize(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CALLDATACOPY:
            LABEL(0x37)
            status = enter(&gas, sp, base, limit, 3, 3, 0)
            if unlikely(status):
                break
            gas = op_calldatacopy(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 3
            pc += 1
            GOTO(pc, threaded)
        elif op == CODESIZE:
            LABEL(0x38)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_codesize(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CODECOPY:
            LABEL(0x39)
            status = enter(&gas, sp, base, limit, 3, 3, 0)
            if unlikely(status):
                break
            gas = op_codecopy(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 3
            pc += 1
            GOTO(pc, threaded)
        elif op == GASPRICE:
            LABEL(0x3a)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_gasprice(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == EXTCODESIZE:
            LABEL(0x3b)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x3b], 1, 0)
            if likely(status == RUNNING):
                status = op_extcodesize(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == EXTCODECOPY:
            LABEL(0x3c)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x3c], 4, 0)
            if likely(status == RUNNING):
                status = op_extcodecopy(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            sp += 4
            pc += 1
            GOTO(pc, threaded)
        elif op == RETURNDATASIZE:
            LABEL(0x3d)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x3d], 0, 1)
            if unlikely(status):
                break
            op_returndatasize(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == RETURNDATACOPY:
            LABEL(0x3e)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x3e], 3, 0)
            if likely(status == RUNNING):
                status = op_returndatacopy(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            sp += 3
            pc += 1
            GOTO(pc, threaded)
        elif op == EXTCODEHASH:
            LABEL(0x3f)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x3f], 1, 0)
            if likely(status == RUNNING):
                status = op_extcodehash(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == BLOCKHASH:
            LABEL(0x40)
            status = enter_hosted(f, pc, sp, gas, base, limit, 20, 1, 0)
            if likely(status == RUNNING):
                status = op_blockhash(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == COINBASE:
            LABEL(0x41)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_coinbase(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == TIMESTAMP:
            LABEL(0x42)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_timestamp(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == NUMBER:
            LABEL(0x43)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_number(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == PREVRANDAO:
            LABEL(0x44)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_prevrandao(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == GASLIMIT:
            LABEL(0x45)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_gaslimit(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == CHAINID:
            LABEL(0x46)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x46], 0, 1)
            if unlikely(status):
                break
            op_chainid(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SELFBALANCE:
            LABEL(0x47)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x47], 0, 1)
            if unlikely(status):
                break
            op_selfbalance(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == BASEFEE:
            LABEL(0x48)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x48], 0, 1)
            if unlikely(status):
                break
            op_basefee(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == BLOBHASH:
            LABEL(0x49)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x49], 1, 0)
            if unlikely(status):
                break
            op_blobhash(f, sp)
            pc += 1
            GOTO(pc, threaded)
        elif op == BLOBBASEFEE:
            LABEL(0x4a)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x4a], 0, 1)
            if unlikely(status):
                break
            op_blobbasefee(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SLOTNUM:
            LABEL(0x4b)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x4b], 0, 1)
            if unlikely(status):
                break
            op_slotnum(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == POP:
            LABEL(0x50)
            status = enter(&gas, sp, base, limit, 2, 1, 0)
            if unlikely(status):
                break
            sp += 1
            pc += 1
            GOTO(pc, threaded)
        elif op == MLOAD:
            LABEL(0x51)
            status = enter(&gas, sp, base, limit, 3, 1, 0)
            if unlikely(status):
                break
            gas = op_mload(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == MSTORE:
            LABEL(0x52)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            gas = op_mstore(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == MSTORE8:
            LABEL(0x53)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            gas = op_mstore8(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == SLOAD:
            LABEL(0x54)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x54], 1, 0)
            if likely(status == RUNNING):
                status = op_sload(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == SSTORE:
            LABEL(0x55)
            status = enter_hosted(f, pc, sp, gas, base, limit, 0, 2, 0)
            if likely(status == RUNNING):
                status = op_sstore(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == JUMP:
            LABEL(0x56)
            status = enter(&gas, sp, base, limit, 8 + landing, 1, 0)
            if unlikely(status):
                break
            status = op_jump(f, sp, pc)
            if unlikely(status):
                break
            pc = f.code + sp[0].d[0] + landing
            sp += 1
            GOTO(pc, threaded)
        elif op == JUMPI:
            LABEL(0x57)
            status = enter(&gas, sp, base, limit, 10, 2, 0)
            if unlikely(status):
                break
            if word_is_zero(&sp[1]):
                pc += 1
            else:
                status = op_jump(f, sp, pc)
                if unlikely(status):
                    break
                gas -= landing
                pc = f.code + sp[0].d[0] + landing
            sp += 2
            GOTO(pc, threaded)
        elif op == PC:
            LABEL(0x58)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_pc(f, sp - 1, pc)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == MSIZE:
            LABEL(0x59)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_msize(f, sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == GAS:
            LABEL(0x5a)
            status = enter(&gas, sp, base, limit, 2, 0, 1)
            if unlikely(status):
                break
            op_gas(sp - 1, gas)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == JUMPDEST:
            LABEL(0x5b)
            status = enter(&gas, sp, base, limit, 1, 0, 0)
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == TLOAD:
            LABEL(0x5c)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x5c], 1, 0)
            if likely(status == RUNNING):
                status = op_tload(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            pc += 1
            GOTO(pc, threaded)
        elif op == TSTORE:
            LABEL(0x5d)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0x5d], 2, 0)
            if likely(status == RUNNING):
                status = op_tstore(f, sp)
            gas = f.gas
            if unlikely(status):
                break
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == MCOPY:
            LABEL(0x5e)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x5e], 3, 0)
            if unlikely(status):
                break
            gas = op_mcopy(f, sp, gas)
            if unlikely(gas < 0):
                status = OUT_OF_GAS
                break
            sp += 3
            pc += 1
            GOTO(pc, threaded)
        elif op == PUSH0:
            LABEL(0x5f)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0x5f], 0, 1)
            if unlikely(status):
                break
            op_push0(sp - 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == PUSH1:
            LABEL(0x60)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push1(sp - 1, pc + 1)
            sp -= 1
            pc += 2
            GOTO(pc, threaded)
        elif op == PUSH2:
            LABEL(0x61)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            if Tracing is Untraced and pc[3] == JUMP:
                gas -= 8 + landing  # the next op finds it negative
                at = load16_big(pc + 1)
                status = check_jump(f, at, pc)
                if unlikely(status):
                    break
                pc = f.code + at + landing
                GOTO(pc, threaded)
                continue
            if Tracing is Untraced and pc[3] == JUMPI and likely(sp < base):
                gas -= 10  # the next op finds it negative
                if word_is_zero(&sp[0]):
                    pc += 4
                else:
                    at = load16_big(pc + 1)
                    status = check_jump(f, at, pc)
                    if unlikely(status):
                        break
                    gas -= landing
                    pc = f.code + at + landing
                sp += 1
                GOTO(pc, threaded)
                continue
            op_push8(sp - 1, pc + 1, 2)
            sp -= 1
            pc += 3
            GOTO(pc, threaded)
        elif op == PUSH3:
            LABEL(0x62)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push8(sp - 1, pc + 1, 3)
            sp -= 1
            pc += 4
            GOTO(pc, threaded)
        elif op == PUSH4:
            LABEL(0x63)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push8(sp - 1, pc + 1, 4)
            sp -= 1
            pc += 5
            GOTO(pc, threaded)
        elif op == PUSH5:
            LABEL(0x64)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push8(sp - 1, pc + 1, 5)
            sp -= 1
            pc += 6
            GOTO(pc, threaded)
        elif op == PUSH6:
            LABEL(0x65)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push8(sp - 1, pc + 1, 6)
            sp -= 1
            pc += 7
            GOTO(pc, threaded)
        elif op == PUSH7:
            LABEL(0x66)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push8(sp - 1, pc + 1, 7)
            sp -= 1
            pc += 8
            GOTO(pc, threaded)
        elif op == PUSH8:
            LABEL(0x67)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push8(sp - 1, pc + 1, 8)
            sp -= 1
            pc += 9
            GOTO(pc, threaded)
        elif op == PUSH9:
            LABEL(0x68)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 9)
            sp -= 1
            pc += 10
            GOTO(pc, threaded)
        elif op == PUSH10:
            LABEL(0x69)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 10)
            sp -= 1
            pc += 11
            GOTO(pc, threaded)
        elif op == PUSH11:
            LABEL(0x6a)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 11)
            sp -= 1
            pc += 12
            GOTO(pc, threaded)
        elif op == PUSH12:
            LABEL(0x6b)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 12)
            sp -= 1
            pc += 13
            GOTO(pc, threaded)
        elif op == PUSH13:
            LABEL(0x6c)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 13)
            sp -= 1
            pc += 14
            GOTO(pc, threaded)
        elif op == PUSH14:
            LABEL(0x6d)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 14)
            sp -= 1
            pc += 15
            GOTO(pc, threaded)
        elif op == PUSH15:
            LABEL(0x6e)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 15)
            sp -= 1
            pc += 16
            GOTO(pc, threaded)
        elif op == PUSH16:
            LABEL(0x6f)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push16(sp - 1, pc + 1, 16)
            sp -= 1
            pc += 17
            GOTO(pc, threaded)
        elif op == PUSH17:
            LABEL(0x70)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 17)
            sp -= 1
            pc += 18
            GOTO(pc, threaded)
        elif op == PUSH18:
            LABEL(0x71)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 18)
            sp -= 1
            pc += 19
            GOTO(pc, threaded)
        elif op == PUSH19:
            LABEL(0x72)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 19)
            sp -= 1
            pc += 20
            GOTO(pc, threaded)
        elif op == PUSH20:
            LABEL(0x73)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 20)
            sp -= 1
            pc += 21
            GOTO(pc, threaded)
        elif op == PUSH21:
            LABEL(0x74)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 21)
            sp -= 1
            pc += 22
            GOTO(pc, threaded)
        elif op == PUSH22:
            LABEL(0x75)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 22)
            sp -= 1
            pc += 23
            GOTO(pc, threaded)
        elif op == PUSH23:
            LABEL(0x76)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 23)
            sp -= 1
            pc += 24
            GOTO(pc, threaded)
        elif op == PUSH24:
            LABEL(0x77)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push24(sp - 1, pc + 1, 24)
            sp -= 1
            pc += 25
            GOTO(pc, threaded)
        elif op == PUSH25:
            LABEL(0x78)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 25)
            sp -= 1
            pc += 26
            GOTO(pc, threaded)
        elif op == PUSH26:
            LABEL(0x79)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 26)
            sp -= 1
            pc += 27
            GOTO(pc, threaded)
        elif op == PUSH27:
            LABEL(0x7a)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 27)
            sp -= 1
            pc += 28
            GOTO(pc, threaded)
        elif op == PUSH28:
            LABEL(0x7b)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 28)
            sp -= 1
            pc += 29
            GOTO(pc, threaded)
        elif op == PUSH29:
            LABEL(0x7c)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 29)
            sp -= 1
            pc += 30
            GOTO(pc, threaded)
        elif op == PUSH30:
            LABEL(0x7d)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 30)
            sp -= 1
            pc += 31
            GOTO(pc, threaded)
        elif op == PUSH31:
            LABEL(0x7e)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 31)
            sp -= 1
            pc += 32
            GOTO(pc, threaded)
        elif op == PUSH32:
            LABEL(0x7f)
            status = enter(&gas, sp, base, limit, 3, 0, 1)
            if unlikely(status):
                break
            op_push32(sp - 1, pc + 1, 32)
            sp -= 1
            pc += 33
            GOTO(pc, threaded)
        elif op == DUP1:
            LABEL(0x80)
            status = enter(&gas, sp, base, limit, 3, 1, 1)
            if unlikely(status):
                break
            op_dup(sp, 1)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP2:
            LABEL(0x81)
            status = enter(&gas, sp, base, limit, 3, 2, 1)
            if unlikely(status):
                break
            op_dup(sp, 2)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP3:
            LABEL(0x82)
            status = enter(&gas, sp, base, limit, 3, 3, 1)
            if unlikely(status):
                break
            op_dup(sp, 3)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP4:
            LABEL(0x83)
            status = enter(&gas, sp, base, limit, 3, 4, 1)
            if unlikely(status):
                break
            op_dup(sp, 4)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP5:
            LABEL(0x84)
            status = enter(&gas, sp, base, limit, 3, 5, 1)
            if unlikely(status):
                break
            op_dup(sp, 5)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP6:
            LABEL(0x85)
            status = enter(&gas, sp, base, limit, 3, 6, 1)
            if unlikely(status):
                break
            op_dup(sp, 6)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP7:
            LABEL(0x86)
            status = enter(&gas, sp, base, limit, 3, 7, 1)
            if unlikely(status):
                break
            op_dup(sp, 7)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP8:
            LABEL(0x87)
            status = enter(&gas, sp, base, limit, 3, 8, 1)
            if unlikely(status):
                break
            op_dup(sp, 8)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP9:
            LABEL(0x88)
            status = enter(&gas, sp, base, limit, 3, 9, 1)
            if unlikely(status):
                break
            op_dup(sp, 9)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP10:
            LABEL(0x89)
            status = enter(&gas, sp, base, limit, 3, 10, 1)
            if unlikely(status):
                break
            op_dup(sp, 10)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP11:
            LABEL(0x8a)
            status = enter(&gas, sp, base, limit, 3, 11, 1)
            if unlikely(status):
                break
            op_dup(sp, 11)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP12:
            LABEL(0x8b)
            status = enter(&gas, sp, base, limit, 3, 12, 1)
            if unlikely(status):
                break
            op_dup(sp, 12)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP13:
            LABEL(0x8c)
            status = enter(&gas, sp, base, limit, 3, 13, 1)
            if unlikely(status):
                break
            op_dup(sp, 13)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP14:
            LABEL(0x8d)
            status = enter(&gas, sp, base, limit, 3, 14, 1)
            if unlikely(status):
                break
            op_dup(sp, 14)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP15:
            LABEL(0x8e)
            status = enter(&gas, sp, base, limit, 3, 15, 1)
            if unlikely(status):
                break
            op_dup(sp, 15)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == DUP16:
            LABEL(0x8f)
            status = enter(&gas, sp, base, limit, 3, 16, 1)
            if unlikely(status):
                break
            op_dup(sp, 16)
            sp -= 1
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP1:
            LABEL(0x90)
            status = enter(&gas, sp, base, limit, 3, 2, 0)
            if unlikely(status):
                break
            op_swap(sp, 1)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP2:
            LABEL(0x91)
            status = enter(&gas, sp, base, limit, 3, 3, 0)
            if unlikely(status):
                break
            op_swap(sp, 2)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP3:
            LABEL(0x92)
            status = enter(&gas, sp, base, limit, 3, 4, 0)
            if unlikely(status):
                break
            op_swap(sp, 3)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP4:
            LABEL(0x93)
            status = enter(&gas, sp, base, limit, 3, 5, 0)
            if unlikely(status):
                break
            op_swap(sp, 4)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP5:
            LABEL(0x94)
            status = enter(&gas, sp, base, limit, 3, 6, 0)
            if unlikely(status):
                break
            op_swap(sp, 5)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP6:
            LABEL(0x95)
            status = enter(&gas, sp, base, limit, 3, 7, 0)
            if unlikely(status):
                break
            op_swap(sp, 6)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP7:
            LABEL(0x96)
            status = enter(&gas, sp, base, limit, 3, 8, 0)
            if unlikely(status):
                break
            op_swap(sp, 7)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP8:
            LABEL(0x97)
            status = enter(&gas, sp, base, limit, 3, 9, 0)
            if unlikely(status):
                break
            op_swap(sp, 8)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP9:
            LABEL(0x98)
            status = enter(&gas, sp, base, limit, 3, 10, 0)
            if unlikely(status):
                break
            op_swap(sp, 9)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP10:
            LABEL(0x99)
            status = enter(&gas, sp, base, limit, 3, 11, 0)
            if unlikely(status):
                break
            op_swap(sp, 10)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP11:
            LABEL(0x9a)
            status = enter(&gas, sp, base, limit, 3, 12, 0)
            if unlikely(status):
                break
            op_swap(sp, 11)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP12:
            LABEL(0x9b)
            status = enter(&gas, sp, base, limit, 3, 13, 0)
            if unlikely(status):
                break
            op_swap(sp, 12)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP13:
            LABEL(0x9c)
            status = enter(&gas, sp, base, limit, 3, 14, 0)
            if unlikely(status):
                break
            op_swap(sp, 13)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP14:
            LABEL(0x9d)
            status = enter(&gas, sp, base, limit, 3, 15, 0)
            if unlikely(status):
                break
            op_swap(sp, 14)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP15:
            LABEL(0x9e)
            status = enter(&gas, sp, base, limit, 3, 16, 0)
            if unlikely(status):
                break
            op_swap(sp, 15)
            pc += 1
            GOTO(pc, threaded)
        elif op == SWAP16:
            LABEL(0x9f)
            status = enter(&gas, sp, base, limit, 3, 17, 0)
            if unlikely(status):
                break
            op_swap(sp, 16)
            pc += 1
            GOTO(pc, threaded)
        elif op == LOG0:
            LABEL(0xa0)
            status = enter_hosted(f, pc, sp, gas, base, limit, 375, 2, 0)
            if likely(status == RUNNING):
                status = op_log(f, sp, 0)
            gas = f.gas
            if unlikely(status):
                break
            sp += 2
            pc += 1
            GOTO(pc, threaded)
        elif op == LOG1:
            LABEL(0xa1)
            status = enter_hosted(f, pc, sp, gas, base, limit, 750, 3, 0)
            if likely(status == RUNNING):
                status = op_log(f, sp, 1)
            gas = f.gas
            if unlikely(status):
                break
            sp += 3
            pc += 1
            GOTO(pc, threaded)
        elif op == LOG2:
            LABEL(0xa2)
            status = enter_hosted(f, pc, sp, gas, base, limit, 1125, 4, 0)
            if likely(status == RUNNING):
                status = op_log(f, sp, 2)
            gas = f.gas
            if unlikely(status):
                break
            sp += 4
            pc += 1
            GOTO(pc, threaded)
        elif op == LOG3:
            LABEL(0xa3)
            status = enter_hosted(f, pc, sp, gas, base, limit, 1500, 5, 0)
            if likely(status == RUNNING):
                status = op_log(f, sp, 3)
            gas = f.gas
            if unlikely(status):
                break
            sp += 5
            pc += 1
            GOTO(pc, threaded)
        elif op == LOG4:
            LABEL(0xa4)
            status = enter_hosted(f, pc, sp, gas, base, limit, 1875, 6, 0)
            if likely(status == RUNNING):
                status = op_log(f, sp, 4)
            gas = f.gas
            if unlikely(status):
                break
            sp += 6
            pc += 1
            GOTO(pc, threaded)
        elif op == DUPN:
            LABEL(0xe6)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0xe6], 17, 1)
            if likely(status == RUNNING):
                status = op_dupn(sp, base, pc[1])
            if unlikely(status):
                break
            sp -= 1
            pc += 2
            GOTO(pc, threaded)
        elif op == SWAPN:
            LABEL(0xe7)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0xe7], 18, 0)
            if likely(status == RUNNING):
                status = op_swapn(sp, base, pc[1])
            if unlikely(status):
                break
            pc += 2
            GOTO(pc, threaded)
        elif op == EXCHANGE:
            LABEL(0xe8)
            status = enter_priced(&gas, sp, base, limit, f.schedule.gas[0xe8], 3, 0)
            if likely(status == RUNNING):
                status = op_exchange(sp, base, pc[1])
            if unlikely(status):
                break
            pc += 2
            GOTO(pc, threaded)
        elif op == CREATE:
            LABEL(0xf0)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xf0], 3, 0)
            if likely(status == RUNNING):
                status = op_create(f, sp)
            gas = f.gas
            if status == ENTER_CALL:
                sp += 2
                pc += 1
            break
        elif op == CALL:
            LABEL(0xf1)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xf1], 7, 0)
            if likely(status == RUNNING):
                status = op_call(f, sp)
            gas = f.gas
            if status == ENTER_CALL:
                sp += 6
                pc += 1
            break
        elif op == CALLCODE:
            LABEL(0xf2)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xf2], 7, 0)
            if likely(status == RUNNING):
                status = op_callcode(f, sp)
            gas = f.gas
            if status == ENTER_CALL:
                sp += 6
                pc += 1
            break
        elif op == RETURN:
            LABEL(0xf3)
            status = enter_hosted(f, pc, sp, gas, base, limit, 0, 2, 0)
            if likely(status == RUNNING):
                status = op_return(f, sp)
            gas = f.gas
            break
        elif op == DELEGATECALL:
            LABEL(0xf4)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xf4], 6, 0)
            if likely(status == RUNNING):
                status = op_delegatecall(f, sp)
            gas = f.gas
            if status == ENTER_CALL:
                sp += 5
                pc += 1
            break
        elif op == CREATE2:
            LABEL(0xf5)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xf5], 4, 0)
            if likely(status == RUNNING):
                status = op_create2(f, sp)
            gas = f.gas
            if status == ENTER_CALL:
                sp += 3
                pc += 1
            break
        elif op == STATICCALL:
            LABEL(0xfa)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xfa], 6, 0)
            if likely(status == RUNNING):
                status = op_staticcall(f, sp)
            gas = f.gas
            if status == ENTER_CALL:
                sp += 5
                pc += 1
            break
        elif op == REVERT:
            LABEL(0xfd)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xfd], 2, 0)
            if likely(status == RUNNING):
                status = op_revert(f, sp)
            gas = f.gas
            break
        elif op == INVALID:
            LABEL(0xfe)
            status = INVALID_OPCODE
            break
        elif op == SELFDESTRUCT:
            LABEL(0xff)
            status = enter_hosted(f, pc, sp, gas, base, limit, f.schedule.gas[0xff], 1, 0)
            if likely(status == RUNNING):
                status = op_selfdestruct(f, sp)
            gas = f.gas
            break
        else:
            UNDEFINED_LABEL()
            status = UNDEFINED_OPCODE
            break
    f.pc = pc
    f.sp = sp
    f.gas = gas
    if status == OUT_OF_GAS and f.machine.status == OUT_OF_MEMORY:
        status = OUT_OF_MEMORY
    if status == CANCELLED:
        status = pause_at_jump(f, landing)
    if Tracing is Traced:
        if status == NEEDS_STATE or status == SUSPENDED:
            forget_step(f.machine)
        else:
            settle_step(f.machine, gas, status)
    restore(f, status)
    return status


cdef Status run_untraced(Frame* f) noexcept nogil:
    return run[Untraced](f, NULL)


cdef Status run_traced(Frame* f) noexcept nogil:
    return run[Traced](f, NULL)
