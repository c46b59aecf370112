# Memory access: MLOAD, MSTORE, MSTORE8, MSIZE, MCOPY.
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memmove

from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.memory cimport memory_span, memory_use
from fastevm.core.primitives.intrinsics cimport unlikely
from fastevm.core.primitives.word cimport Word, word_load, word_set, word_store
from fastevm.core.spec.constants cimport COPY_WORD_COST


cdef inline int64_t op_mload(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    gas = memory_use(f, &sp[0], 32, gas)
    if unlikely(gas < 0):
        return gas
    word_load(&sp[0], f.memory + sp[0].d[0])
    return gas


cdef inline int64_t op_mstore(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    gas = memory_use(f, &sp[0], 32, gas)
    if unlikely(gas < 0):
        return gas
    word_store(f.memory + sp[0].d[0], &sp[1])
    return gas


cdef inline int64_t op_mstore8(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    gas = memory_use(f, &sp[0], 1, gas)
    if unlikely(gas < 0):
        return gas
    f.memory[sp[0].d[0]] = <uint8_t>sp[1].d[0]
    return gas


cdef inline void op_msize(const Frame* f, Word* top) noexcept nogil:
    word_set(top, f.memory_size)


cdef inline int64_t op_mcopy(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    gas = memory_span(f, &sp[0], &sp[2], gas)
    if gas >= 0:
        gas = memory_span(f, &sp[1], &sp[2], gas)
    if gas < 0:
        return gas
    gas -= <int64_t>((sp[2].d[0] + 31) >> 5) * COPY_WORD_COST
    if gas >= 0 and sp[2].d[0] != 0:
        memmove(f.memory + sp[0].d[0], f.memory + sp[1].d[0], sp[2].d[0])
    return gas
