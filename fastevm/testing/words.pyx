"""Operations on 256-bit words as functions of Python ints."""

from collections.abc import Callable

from fastevm.core.primitives.word cimport (
    Word,
    word_add,
    word_and,
    word_byte,
    word_copy,
    word_eq,
    word_from_int,
    word_lt,
    word_mul,
    word_negate,
    word_not,
    word_or,
    word_sar,
    word_shl,
    word_shr,
    word_signextend,
    word_slt,
    word_sub,
    word_to_int,
    word_xor,
)
from fastevm.core.primitives.word_division cimport (
    word_addmod,
    word_div,
    word_exp,
    word_mod,
    word_mulmod,
    word_sdiv,
    word_smod,
)

ctypedef void (*Unary)(Word* r, const Word* a) noexcept nogil
ctypedef void (*Binary)(Word* r, const Word* a, const Word* b) noexcept nogil
ctypedef void (*Ternary)(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil
ctypedef bint (*Relation)(const Word* a, const Word* b) noexcept nogil


# Each operation is repeated with the result overwriting each operand: the results must be equal.
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
