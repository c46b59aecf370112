# The stack: PUSH, DUP, SWAP, EXCHANGE. The loop implements POP.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.interpreter.status cimport INVALID_OPCODE, RUNNING, STACK_UNDERFLOW, Status
from fastevm.core.primitives.intrinsics cimport load64_big
from fastevm.core.primitives.word cimport Word, word_copy, word_set, word_zero


# PUSH1 to PUSH32, one function for each number of 64-bit limbs. `size` is the number of bytes and a
# constant. Reading a whole limb past the end of the code is safe, because the code is padded.
cdef inline void op_push1(Word* top, const uint8_t* p) noexcept nogil:
    word_set(top, p[0])


cdef inline void op_push8(Word* top, const uint8_t* p, int size) noexcept nogil:
    word_set(top, load64_big(p) >> (64 - 8 * size))


cdef inline void op_push16(Word* top, const uint8_t* p, int size) noexcept nogil:
    top.d[0] = load64_big(p + size - 8)
    top.d[1] = load64_big(p) >> (128 - 8 * size)
    top.d[2] = 0
    top.d[3] = 0


cdef inline void op_push24(Word* top, const uint8_t* p, int size) noexcept nogil:
    top.d[0] = load64_big(p + size - 8)
    top.d[1] = load64_big(p + size - 16)
    top.d[2] = load64_big(p) >> (192 - 8 * size)
    top.d[3] = 0


cdef inline void op_push32(Word* top, const uint8_t* p, int size) noexcept nogil:
    top.d[0] = load64_big(p + size - 8)
    top.d[1] = load64_big(p + size - 16)
    top.d[2] = load64_big(p + size - 24)
    top.d[3] = load64_big(p) >> (256 - 8 * size)


cdef inline void op_push0(Word* top) noexcept nogil:
    word_zero(top)


cdef inline void op_dup(Word* sp, int n) noexcept nogil:
    word_copy(sp - 1, &sp[n - 1])


cdef inline void op_swap(Word* sp, int n) noexcept nogil:
    cdef uint64_t a0 = sp[0].d[0], a1 = sp[0].d[1], a2 = sp[0].d[2], a3 = sp[0].d[3]
    word_copy(&sp[0], &sp[n])
    sp[n].d[0] = a0
    sp[n].d[1] = a1
    sp[n].d[2] = a2
    sp[n].d[3] = a3


# Decodes n from the byte after DUPN or SWAPN (EIP-8024). Bytes that are JUMPDEST or PUSH opcodes
# are invalid.
cdef inline Status read_depth(uint8_t immediate, int* n) noexcept nogil:
    if 91 <= immediate <= 127:
        return INVALID_OPCODE
    n[0] = (immediate + 145) & 0xff
    return RUNNING


cdef inline Status op_dupn(Word* sp, const Word* base, uint8_t immediate) noexcept nogil:
    cdef int n = 0
    cdef Status status = read_depth(immediate, &n)
    if status != RUNNING:
        return status
    if base - sp < n:
        return STACK_UNDERFLOW
    op_dup(sp, n)
    return RUNNING


cdef inline Status op_swapn(Word* sp, const Word* base, uint8_t immediate) noexcept nogil:
    cdef int n = 0
    cdef Status status = read_depth(immediate, &n)
    if status != RUNNING:
        return status
    if base - sp < n + 1:
        return STACK_UNDERFLOW
    op_swap(sp, n)
    return RUNNING


cdef inline Status op_exchange(Word* sp, const Word* base, uint8_t immediate) noexcept nogil:
    """Swaps the stack items n + 1 and m + 1, counted from the top: 1 <= n < m <= 30 - n."""
    cdef int pair = immediate ^ 0x8f
    cdef int n = pair >> 4, m = pair & 15
    if 82 <= immediate <= 127:
        return INVALID_OPCODE
    if n < m:
        n += 1
        m += 1
    else:
        n, m = m + 1, 29 - n
    if base - sp < m + 1:
        return STACK_UNDERFLOW
    op_swap(sp + n, m - n)
    return RUNNING
