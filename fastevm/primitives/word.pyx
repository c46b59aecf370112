"""Conversions between 256-bit words and Python ints."""


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
