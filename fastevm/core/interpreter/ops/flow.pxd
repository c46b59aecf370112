# Control flow: jumps, PC, GAS, RETURN, REVERT. The loop implements STOP, INVALID and JUMPDEST.
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from fastevm.core.interpreter.frame cimport check_jump
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.memory cimport memory_span
from fastevm.core.interpreter.status cimport (
    INVALID_JUMP,
    OUT_OF_GAS,
    OUT_OF_MEMORY,
    REVERTED,
    RUNNING,
    STOPPED,
    Status,
)
from fastevm.core.primitives.buffer cimport buffer_reserve
from fastevm.core.primitives.intrinsics cimport likely, unlikely
from fastevm.core.primitives.word cimport Word, word_fits64, word_set


cdef inline Status op_jump(
    const Frame* f, const Word* sp, const uint8_t* pc, int64_t gas
) noexcept nogil:
    if unlikely(not word_fits64(&sp[0])):
        return INVALID_JUMP
    return check_jump(f, sp[0].d[0], pc, gas)


cdef inline void op_pc(const Frame* f, Word* top, const uint8_t* pc) noexcept nogil:
    word_set(top, <size_t>(pc - f.code))


cdef inline void op_gas(Word* top, int64_t gas) noexcept nogil:
    word_set(top, <size_t>gas)


# Copies `size` bytes of the frame's memory to the machine's output.
cdef inline Status give_output(Frame* f, const Word* offset, const Word* size) noexcept nogil:
    f.gas = memory_span(f, offset, size, f.gas)
    if f.gas < 0:
        return OUT_OF_GAS
    if not buffer_reserve(&f.machine.output, size.d[0]):
        return OUT_OF_MEMORY
    if size.d[0] != 0:
        memcpy(f.machine.output.bytes, f.memory + offset.d[0], size.d[0])
    f.machine.output.size = size.d[0]
    return RUNNING


cdef inline Status op_return(Frame* f, Word* sp) noexcept nogil:
    cdef Status status = give_output(f, &sp[0], &sp[1])
    return STOPPED if likely(status == RUNNING) else status


cdef inline Status op_revert(Frame* f, Word* sp) noexcept nogil:
    cdef Status status = give_output(f, &sp[0], &sp[1])
    return REVERTED if likely(status == RUNNING) else status
