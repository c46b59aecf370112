"""Comparisons of the block's time, number and base fee, found in the code after the op that reads
the member.

A comparison consumes the member if it is the next op, or follows a single PUSH, DUP or SWAP1. The
other operand is a word that the frame has already, so it depends on other reads only. Any other op
may depend on the member's exact value.
"""

from libc.stdint cimport UINT64_MAX, uint8_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame, Span
from fastevm.core.interpreter.opcodes cimport DUP2, DUP16, EQ, LT, PUSH0, PUSH32, SGT, SLT, SWAP1
from fastevm.core.primitives.word cimport Word, word_copy, word_fits64, word_zero


cdef void read_immediate(const uint8_t* data, int size, Word* out) noexcept nogil:
    cdef int i, at
    word_zero(out)
    for i in range(size):
        at = size - 1 - i
        out.d[at >> 3] |= <uint64_t>data[i] << (8 * (at & 7))


cdef void keep_below(Span* span, uint64_t value, uint64_t limit) noexcept nogil:
    """Narrows the span to the values for which `value < limit` has the same result."""
    if value < limit:
        span.high = min(span.high, limit - 1)
    else:
        span.low = max(span.low, limit)


cdef void keep_above(Span* span, uint64_t value, uint64_t limit) noexcept nogil:
    """Narrows the span to the values for which `value > limit` has the same result."""
    if value > limit:
        span.low = max(span.low, limit + 1)
    else:
        span.high = min(span.high, limit)


cdef bint narrow_span(
    const Frame* f, const Word* top, const uint8_t* pc, Span* span
) noexcept nogil:
    cdef const uint8_t* at = pc + 1
    cdef const Word* below = top + 1
    cdef uint8_t op = at[0]
    cdef bint is_first = True  # the member is the left operand
    cdef uint64_t value = top.d[0]
    cdef uint64_t limit
    cdef Word other
    word_zero(&other)
    if PUSH0 <= op <= PUSH32:
        read_immediate(at + 1, op - PUSH0, &other)
        at += 1 + op - PUSH0
        is_first = False
    else:
        if DUP2 <= op <= DUP16:
            below = top + 1 + (op - DUP2)
        if op == SWAP1 or DUP2 <= op <= DUP16:
            at += 1
            is_first = False
        if below >= f.base:
            return False
        word_copy(&other, below)
    op = at[0]
    limit = other.d[0]
    if not LT <= op <= EQ or not word_fits64(top) or value == UINT64_MAX:
        return False
    # A base fee above 64 bits counts as UINT64_MAX, which signed ops and operands above 64 bits
    # would compare wrongly. So the span excludes UINT64_MAX.
    if op == SLT or op == SGT or not word_fits64(&other):
        span.high = min(span.high, UINT64_MAX - 1)
    if not word_fits64(&other):
        return True           # every value of 64 bits has the same outcome
    if limit == UINT64_MAX:
        return False
    if op == EQ:
        keep_below(span, value, limit)
        keep_above(span, value, limit)
    elif (op == LT or op == SLT) == is_first:
        keep_below(span, value, limit)
    else:
        keep_above(span, value, limit)
    return True
