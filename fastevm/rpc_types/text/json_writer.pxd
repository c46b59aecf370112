# JSON text written piece by piece into a buffer that grows, without the GIL.
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, strlen

from fastevm.core.primitives.buffer cimport Buffer, buffer_append
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.primitives.word cimport Word


# Start from JsonText(Buffer(NULL, 0, 0), False) or from memory of zeros. Once `starved` (memory ran
# out) the text is incomplete: look at it once, at the end; json_take does.
cdef struct JsonText:
    Buffer out
    bint starved


# Bytes as they are: punctuation, names, text that is JSON already. (Strictly less, so that nothing
# is copied to the address of an empty buffer.)
cdef inline void json_raw(JsonText* t, const void* data, size_t size) noexcept nogil:
    if likely(size < t.out.capacity - t.out.size):
        memcpy(t.out.bytes + t.out.size, data, size)
        t.out.size += size
    elif not buffer_append(&t.out, data, size):
        t.starved = True


# A literal of the source; compilers count it.
cdef inline void json_put(JsonText* t, const char* literal) noexcept nogil:
    json_raw(t, literal, strlen(literal))


cdef inline void json_bool(JsonText* t, bint value) noexcept nogil:
    if value:
        json_put(t, b"true")
    else:
        json_put(t, b"false")


# A decimal number, bare.
cdef void json_number(JsonText* t, uint64_t value) noexcept nogil

# Strings, with their quotes. Quantities have no leading zeros; data has two digits for each byte.
cdef void json_quantity(JsonText* t, uint64_t value) noexcept nogil
cdef void json_quantity_word(JsonText* t, const Word* value) noexcept nogil
cdef void json_hex(JsonText* t, const uint8_t* data, size_t size) noexcept nogil
cdef void json_hex_word(JsonText* t, const Word* value) noexcept nogil       # all 32 bytes

# Text, escaped and quoted. What is no UTF-8 becomes U+FFFD, as Python's "replace" does it.
cdef void json_string(JsonText* t, const uint8_t* text, size_t size) noexcept nogil

# The text as a bytes object. A long one is copied without the GIL. MemoryError if it starved.
cdef bytes json_bytes(const JsonText* t)

# The same; the memory is given back.
cdef bytes json_take(JsonText* t)
cdef void json_free(JsonText* t) noexcept nogil
