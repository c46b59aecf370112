# Division, remainders and powers of 256-bit words.
#
# Results may alias operands. Division by zero gives zero, as in the Yellow Paper (appendix H.2).
# The long functions are not inlined, so that they leave registers to their callers.
from fastevm.core.primitives.word cimport Word, word_fits64, word_is_zero, word_set, word_zero


# a = q * b + r, for b != 0.
cdef void word_divmod(Word* q, Word* r, const Word* a, const Word* b) noexcept nogil

# Truncated division; the most negative number divided by -1 is itself.
cdef void word_sdiv(Word* r, const Word* a, const Word* b) noexcept nogil
# Remainder with the sign of the dividend.
cdef void word_smod(Word* r, const Word* a, const Word* b) noexcept nogil

# (a + b) mod n over the full 257-bit sum, (a * b) mod n over the full 512-bit product.
cdef void word_addmod(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil
cdef void word_mulmod(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil

cdef void word_exp(Word* r, const Word* base, const Word* exponent) noexcept nogil


cdef inline void word_div(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef Word rest
    if word_is_zero(b):
        word_zero(r)
    elif word_fits64(a) and word_fits64(b):
        word_set(r, a.d[0] // b.d[0])
    else:
        word_divmod(r, &rest, a, b)


cdef inline void word_mod(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef Word quotient
    if word_is_zero(b):
        word_zero(r)
    elif word_fits64(a) and word_fits64(b):
        word_set(r, a.d[0] % b.d[0])
    else:
        word_divmod(&quotient, r, a, b)
