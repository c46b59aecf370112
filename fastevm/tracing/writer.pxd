# Writes JSON text piece by piece into a buffer that grows.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport strlen

from fastevm.primitives.buffer cimport Buffer, buffer_append
from fastevm.primitives.hexcodec cimport hex_append, hex_append_quantity, hex_append_quantity_word
from fastevm.primitives.word cimport Word


cdef struct Writer:
    Buffer out
    bint starved             # memory ran out: what is in `out` is incomplete


cdef inline void put(Writer* w, const char* text) noexcept nogil:
    if not buffer_append(&w.out, text, strlen(text)):
        w.starved = True


cdef inline void put_number(Writer* w, uint64_t value) noexcept nogil:
    cdef char digits[20]
    cdef int at = 20
    while True:
        at -= 1
        digits[at] = <char>(48 + value % 10)
        value //= 10
        if value == 0:
            break
    if not buffer_append(&w.out, &digits[at], 20 - at):
        w.starved = True


# Gas may be overdrawn by a halt; nothing below zero is shown.
cdef inline uint64_t shown_gas(int64_t gas) noexcept nogil:
    return <uint64_t>gas if gas > 0 else 0


# The strings below come with their quotes.
cdef inline void put_quantity(Writer* w, uint64_t value) noexcept nogil:
    put(w, b'"')
    if not hex_append_quantity(&w.out, value):
        w.starved = True
    put(w, b'"')


cdef inline void put_word(Writer* w, const Word* value) noexcept nogil:
    put(w, b'"')
    if not hex_append_quantity_word(&w.out, value):
        w.starved = True
    put(w, b'"')


cdef inline void put_bytes(Writer* w, const uint8_t* data, size_t size) noexcept nogil:
    put(w, b'"')
    if not hex_append(&w.out, data, size):
        w.starved = True
    put(w, b'"')
