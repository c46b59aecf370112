# Writes JSON text piece by piece into a growing buffer, without the GIL.
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, strlen

from fastevm.core.primitives.buffer cimport Buffer, buffer_append
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.primitives.word cimport Word


# A text. Initialise it with JsonText(Buffer(NULL, 0, 0), False) or with zeros. `starved`: whether
# an allocation failed, so that the text is incomplete. Check `starved` once at the end, as
# json_take does.
cdef struct JsonText:
    Buffer out
    bint starved


# Append bytes unchanged: punctuation, names, JSON text. (The comparison is strict, because an empty
# buffer has the address NULL, to which memcpy must not copy.)
cdef inline void json_raw(JsonText* t, const void* data, size_t size) noexcept nogil:
    if likely(size < t.out.capacity - t.out.size):
        memcpy(t.out.bytes + t.out.size, data, size)
        t.out.size += size
    elif not buffer_append(&t.out, data, size):
        t.starved = True


# Append a literal. The compiler computes its size.
cdef inline void json_put(JsonText* t, const char* literal) noexcept nogil:
    json_raw(t, literal, strlen(literal))


cdef inline void json_bool(JsonText* t, bint value) noexcept nogil:
    if value:
        json_put(t, b"true")
    else:
        json_put(t, b"false")


# Append a decimal number without quotes.
cdef void json_number(JsonText* t, uint64_t value) noexcept nogil

# Append hex strings with quotes. Quantities have no leading zeros; data have two digits per byte.
cdef void json_quantity(JsonText* t, uint64_t value) noexcept nogil
cdef void json_quantity_word(JsonText* t, const Word* value) noexcept nogil
cdef void json_hex(JsonText* t, const uint8_t* data, size_t size) noexcept nogil
cdef void json_hex_word(JsonText* t, const Word* value) noexcept nogil       # all 32 bytes

# Append text, escaped and quoted. Invalid UTF-8 becomes U+FFFD, as with Python's "replace".
cdef void json_string(JsonText* t, const uint8_t* text, size_t size) noexcept nogil

# Returns the text as bytes. Copies long texts without the GIL. Raises MemoryError if `starved` is
# set.
cdef bytes json_bytes(const JsonText* t)

# Returns the text like json_bytes and frees its memory.
cdef bytes json_take(JsonText* t)
cdef void json_free(JsonText* t) noexcept nogil
