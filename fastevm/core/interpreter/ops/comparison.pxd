# Comparison and bitwise operations: LT to CLZ.
from fastevm.core.primitives.word cimport (
    Word,
    word_and,
    word_bits,
    word_byte,
    word_eq,
    word_is_zero,
    word_lt,
    word_not,
    word_or,
    word_sar,
    word_set,
    word_shl,
    word_shr,
    word_slt,
    word_xor,
)


cdef inline void op_lt(Word* sp) noexcept nogil:
    word_set(&sp[1], word_lt(&sp[0], &sp[1]))


cdef inline void op_gt(Word* sp) noexcept nogil:
    word_set(&sp[1], word_lt(&sp[1], &sp[0]))


cdef inline void op_slt(Word* sp) noexcept nogil:
    word_set(&sp[1], word_slt(&sp[0], &sp[1]))


cdef inline void op_sgt(Word* sp) noexcept nogil:
    word_set(&sp[1], word_slt(&sp[1], &sp[0]))


cdef inline void op_eq(Word* sp) noexcept nogil:
    word_set(&sp[1], word_eq(&sp[0], &sp[1]))


cdef inline void op_iszero(Word* sp) noexcept nogil:
    word_set(&sp[0], word_is_zero(&sp[0]))


cdef inline void op_and(Word* sp) noexcept nogil:
    word_and(&sp[1], &sp[0], &sp[1])


cdef inline void op_or(Word* sp) noexcept nogil:
    word_or(&sp[1], &sp[0], &sp[1])


cdef inline void op_xor(Word* sp) noexcept nogil:
    word_xor(&sp[1], &sp[0], &sp[1])


cdef inline void op_not(Word* sp) noexcept nogil:
    word_not(&sp[0], &sp[0])


cdef inline void op_byte(Word* sp) noexcept nogil:
    word_byte(&sp[1], &sp[0], &sp[1])


cdef inline void op_shl(Word* sp) noexcept nogil:
    word_shl(&sp[1], &sp[0], &sp[1])


cdef inline void op_shr(Word* sp) noexcept nogil:
    word_shr(&sp[1], &sp[0], &sp[1])


cdef inline void op_sar(Word* sp) noexcept nogil:
    word_sar(&sp[1], &sp[0], &sp[1])


cdef inline void op_clz(Word* sp) noexcept nogil:
    word_set(&sp[0], 256 - word_bits(&sp[0]))
