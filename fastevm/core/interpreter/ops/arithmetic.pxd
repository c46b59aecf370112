# Arithmetic modulo 2^256: ADD to SIGNEXTEND.
from libc.stdint cimport int64_t

from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.primitives.word cimport Word, word_add, word_bits, word_mul, word_signextend, word_sub
from fastevm.core.primitives.word_division cimport (
    word_addmod,
    word_div,
    word_exp,
    word_mod,
    word_mulmod,
    word_sdiv,
    word_smod,
)


cdef inline void op_add(Word* sp) noexcept nogil:
    word_add(&sp[1], &sp[0], &sp[1])


cdef inline void op_mul(Word* sp) noexcept nogil:
    word_mul(&sp[1], &sp[0], &sp[1])


cdef inline void op_sub(Word* sp) noexcept nogil:
    word_sub(&sp[1], &sp[0], &sp[1])


cdef inline void op_div(Word* sp) noexcept nogil:
    word_div(&sp[1], &sp[0], &sp[1])


cdef inline void op_sdiv(Word* sp) noexcept nogil:
    word_sdiv(&sp[1], &sp[0], &sp[1])


cdef inline void op_mod(Word* sp) noexcept nogil:
    word_mod(&sp[1], &sp[0], &sp[1])


cdef inline void op_smod(Word* sp) noexcept nogil:
    word_smod(&sp[1], &sp[0], &sp[1])


cdef inline void op_addmod(Word* sp) noexcept nogil:
    word_addmod(&sp[2], &sp[0], &sp[1], &sp[2])


cdef inline void op_mulmod(Word* sp) noexcept nogil:
    word_mulmod(&sp[2], &sp[0], &sp[1], &sp[2])


cdef inline int64_t op_exp(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    gas -= f.schedule.exp_byte_cost * ((word_bits(&sp[1]) + 7) >> 3)
    if gas >= 0:
        word_exp(&sp[1], &sp[0], &sp[1])
    return gas


cdef inline void op_signextend(Word* sp) noexcept nogil:
    word_signextend(&sp[1], &sp[0], &sp[1])
