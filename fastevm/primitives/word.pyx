"""Conversions between 256-bit words and Python ints; every operation on ints, for tests."""

from fastevm.primitives.word_division cimport (
    word_addmod, word_div, word_exp, word_mod, word_mulmod, word_sdiv, word_smod,
)

from typing import Callable

ctypedef void (*Unary)(Word* r, const Word* a) noexcept nogil
ctypedef void (*Binary)(Word* r, const Word* a, const Word* b) noexcept nogil
ctypedef void (*Ternary)(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil
ctypedef bint (*Relation)(const Word* a, const Word* b) noexcept nogil


cdef int word_from_int(Word* r, object n) except -1:
    cdef bytes raw
    if not isinstance(n, int):
        raise TypeError(f"expected an int, not {type(n).__name__}")
    if n < 0 or n.bit_length() > 256:
        raise OverflowError("the number does not fit 256 bits without a sign")
    raw = n.to_bytes(32, "big")
    word_load(r, raw)
    return 0


cdef object word_to_int(const Word* a):
    cdef uint8_t raw[32]
    if word_fits64(a):
        return a.d[0]
    word_store(raw, a)
    return int.from_bytes(raw[:32], "big")


# The results land in a copy of the first operand, then of the second: aliasing is part of each
# test.
cdef object apply_unary(Unary f, object a):
    cdef Word x
    word_from_int(&x, a)
    f(&x, &x)
    return word_to_int(&x)


cdef object apply_binary(Binary f, object a, object b):
    cdef Word x, y, apart, left, right
    word_from_int(&x, a)
    word_from_int(&y, b)
    word_copy(&left, &x)
    word_copy(&right, &y)
    f(&apart, &x, &y)
    f(&left, &left, &y)
    f(&right, &x, &right)
    if not (word_eq(&apart, &left) and word_eq(&apart, &right)):
        raise AssertionError("the result depends on which operand it overwrites")
    return word_to_int(&apart)


cdef object apply_ternary(Ternary f, object a, object b, object n):
    cdef Word x, y, z, apart, left, middle, right
    word_from_int(&x, a)
    word_from_int(&y, b)
    word_from_int(&z, n)
    word_copy(&left, &x)
    word_copy(&middle, &y)
    word_copy(&right, &z)
    f(&apart, &x, &y, &z)
    f(&left, &left, &y, &z)
    f(&middle, &x, &middle, &z)
    f(&right, &x, &y, &right)
    if not (word_eq(&apart, &left) and word_eq(&apart, &middle) and word_eq(&apart, &right)):
        raise AssertionError("the result depends on which operand it overwrites")
    return word_to_int(&apart)


cdef bint apply_relation(Relation f, object a, object b) except -1:
    cdef Word x, y
    word_from_int(&x, a)
    word_from_int(&y, b)
    return f(&x, &y)


OPERATIONS: dict[str, Callable[..., int]] = {
    "not": lambda a: apply_unary(word_not, a),
    "negate": lambda a: apply_unary(word_negate, a),
    "add": lambda a, b: apply_binary(word_add, a, b),
    "sub": lambda a, b: apply_binary(word_sub, a, b),
    "mul": lambda a, b: apply_binary(word_mul, a, b),
    "div": lambda a, b: apply_binary(word_div, a, b),
    "mod": lambda a, b: apply_binary(word_mod, a, b),
    "sdiv": lambda a, b: apply_binary(word_sdiv, a, b),
    "smod": lambda a, b: apply_binary(word_smod, a, b),
    "exp": lambda a, b: apply_binary(word_exp, a, b),
    "and": lambda a, b: apply_binary(word_and, a, b),
    "or": lambda a, b: apply_binary(word_or, a, b),
    "xor": lambda a, b: apply_binary(word_xor, a, b),
    "shl": lambda a, b: apply_binary(word_shl, a, b),
    "shr": lambda a, b: apply_binary(word_shr, a, b),
    "sar": lambda a, b: apply_binary(word_sar, a, b),
    "byte": lambda a, b: apply_binary(word_byte, a, b),
    "signextend": lambda a, b: apply_binary(word_signextend, a, b),
    "addmod": lambda a, b, n: apply_ternary(word_addmod, a, b, n),
    "mulmod": lambda a, b, n: apply_ternary(word_mulmod, a, b, n),
    "eq": lambda a, b: apply_relation(word_eq, a, b),
    "lt": lambda a, b: apply_relation(word_lt, a, b),
    "slt": lambda a, b: apply_relation(word_slt, a, b),
}
