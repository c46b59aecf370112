"""Conversions between 256-bit words, or 64-bit integers, and Python ints."""

from cpython.long cimport PyLong_Check
from cpython.number cimport PyNumber_Index


cdef int word_from_int(Word* r, object n) except -1:
    return word_from_named(r, n, "the number")


cdef int word_from_named(Word* r, object n, str name) except -1:
    cdef bytes raw
    n = indexed(n, name)
    check_fits(n, 256, name)
    raw = n.to_bytes(32, "big")
    word_load(r, raw)
    return 0


cdef uint64_t uint64_from_named(object n, str name) except? 0:
    n = indexed(n, name)
    check_fits(n, 64, name)
    return n


cdef object indexed(object n, str name):
    """Returns an int, from an int or an object with __index__ such as an integer of numpy."""
    if PyLong_Check(n):
        return n
    try:
        return PyNumber_Index(n)
    except TypeError:
        raise TypeError(f"{name} is an int, not {type(n).__name__}") from None


cdef int check_fits(object n, int bits, str name) except -1:
    if n < 0:
        raise OverflowError(f"{name} cannot be negative")
    if n.bit_length() > bits:
        raise OverflowError(f"{name} does not fit {bits} bits")
    return 0


cdef object word_to_int(const Word* a):
    cdef uint8_t raw[32]
    if word_fits64(a):
        return a.d[0]
    word_store(raw, a)
    return int.from_bytes(raw[:32], "big")
