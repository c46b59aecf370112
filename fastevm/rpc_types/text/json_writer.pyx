"""Writes JSON text piece by piece: numbers, hex and strings (RFC 8259) in a growing buffer."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport SIZE_MAX
from libc.string cimport memcpy, memset

from fastevm.core.primitives.buffer cimport buffer_free, buffer_reserve
from fastevm.core.primitives.hex cimport hex_encode
from fastevm.core.primitives.intrinsics cimport clz64
from fastevm.core.primitives.word cimport word_bits, word_fits64, word_from_int, word_store


cdef enum:
    DECIMAL_DIGITS = 20       # most decimal digits of a 64-bit number
    WORD_DIGITS = 64          # hex digits of a 256-bit word
    ESCAPED = 6               # bytes of the longest escape, \u001f
    REPLACEMENT_SIZE = 3      # bytes of U+FFFD in UTF-8
    LARGE_TEXT = 65_536       # bytes; larger texts are copied without the GIL

cdef const char* DIGITS = "0123456789abcdef"
cdef const char* REPLACEMENT = "\xef\xbf\xbd"

# For each character, the character that follows the backslash in its escape; u for the long form;
# zero if the character needs no escape.
cdef uint8_t[128] ESCAPES


cdef void fill_escapes() noexcept nogil:
    cdef int i
    memset(ESCAPES, 0, sizeof(ESCAPES))
    for i in range(32):
        ESCAPES[i] = c'u'
    ESCAPES[c'"'] = c'"'
    ESCAPES[c'\\'] = c'\\'
    ESCAPES[c'\b'] = c'b'
    ESCAPES[c'\t'] = c't'
    ESCAPES[c'\n'] = c'n'
    ESCAPES[c'\f'] = c'f'
    ESCAPES[c'\r'] = c'r'


# Reserves `size` bytes. Returns their address, or NULL if memory is exhausted.
cdef inline char* taken(JsonText* t, size_t size) noexcept nogil:
    cdef char* at
    if size > t.out.capacity - t.out.size:
        if size > SIZE_MAX - t.out.size or not buffer_reserve(&t.out, t.out.size + size):
            t.starved = True
            return NULL
    at = <char*>t.out.bytes + t.out.size
    t.out.size += size
    return at


# Reserves space for quotes, 0x and the digits. Returns the address of the digits, or NULL.
cdef inline char* taken_hex(JsonText* t, size_t digits) noexcept nogil:
    cdef char* at = taken(t, digits + 4)
    if at == NULL:
        return NULL
    at[0] = c'"'
    at[1] = c'0'
    at[2] = c'x'
    at[digits + 3] = c'"'
    return at + 3


# --- numbers and hex ---

cdef void json_number(JsonText* t, uint64_t value) noexcept nogil:
    cdef char digits[DECIMAL_DIGITS]
    cdef int at = DECIMAL_DIGITS
    while True:
        at -= 1
        digits[at] = <char>(c'0' + value % 10)
        value //= 10
        if value == 0:
            break
    json_raw(t, &digits[at], <size_t>(DECIMAL_DIGITS - at))


cdef void json_quantity(JsonText* t, uint64_t value) noexcept nogil:
    cdef size_t digits = 1 if value == 0 else <size_t>(67 - clz64(value)) // 4
    cdef char* at = taken_hex(t, digits)
    if at == NULL:
        return
    while digits > 0:
        digits -= 1
        at[digits] = DIGITS[value & 15]
        value >>= 4


cdef void json_quantity_word(JsonText* t, const Word* value) noexcept nogil:
    cdef uint8_t raw[32]
    cdef char text[WORD_DIGITS]
    cdef size_t digits
    cdef char* at
    if word_fits64(value):
        json_quantity(t, value.d[0])
        return
    word_store(raw, value)
    hex_encode(text, raw, 32)
    digits = <size_t>(word_bits(value) + 3) // 4
    at = taken_hex(t, digits)
    if at != NULL:
        memcpy(at, text + WORD_DIGITS - digits, digits)


cdef void json_hex(JsonText* t, const uint8_t* data, size_t size) noexcept nogil:
    cdef char* at
    if size > SIZE_MAX // 4:
        t.starved = True
        return
    at = taken_hex(t, 2 * size)
    if at != NULL:
        hex_encode(at, data, size)


cdef void json_hex_word(JsonText* t, const Word* value) noexcept nogil:
    cdef uint8_t raw[32]
    word_store(raw, value)
    json_hex(t, raw, 32)


# --- strings ---

# Returns whether `second` may follow the first byte of a UTF-8 sequence. Rules out overlong forms,
# surrogates and values beyond U+10FFFF.
cdef inline bint follows(uint8_t first, uint8_t second) noexcept nogil:
    cdef uint8_t low = 0x80, high = 0xbf
    if first == 0xe0:
        low = 0xa0
    elif first == 0xed:
        high = 0x9f
    elif first == 0xf0:
        low = 0x90
    elif first == 0xf4:
        high = 0x8f
    return low <= second <= high


# Returns the size of the sequence at `p`. If negative, that many bytes are invalid and replaced by
# one character (the Unicode standard, chapter 3.9, "maximal subpart").
cdef int sequence_size(const uint8_t* p, size_t left) noexcept nogil:
    cdef uint8_t first = p[0]
    cdef int wanted, i
    if first < 0x80:
        return 1
    if first < 0xc2 or first > 0xf4:
        return -1
    wanted = 2 if first < 0xe0 else 3 if first < 0xf0 else 4
    if left < 2 or not follows(first, p[1]):
        return -1
    for i in range(2, wanted):
        if <size_t>i >= left or p[i] & 0xc0 != 0x80:
            return -i
    return wanted


cdef void put_escaped(JsonText* t, uint8_t character) noexcept nogil:
    cdef char form[ESCAPED]
    form[0] = c'\\'
    form[1] = <char>ESCAPES[character]
    if form[1] != c'u':
        json_raw(t, form, 2)
        return
    form[2] = c'0'
    form[3] = c'0'
    form[4] = DIGITS[character >> 4]
    form[5] = DIGITS[character & 15]
    json_raw(t, form, ESCAPED)


cdef void json_string(JsonText* t, const uint8_t* text, size_t size) noexcept nogil:
    cdef size_t at = 0, unescaped = 0
    cdef int step
    json_put(t, b'"')
    while at < size:
        if text[at] < 0x80 and ESCAPES[text[at]] == 0:
            at += 1
            continue
        step = sequence_size(text + at, size - at)
        if step > 1:
            at += <size_t>step
            continue
        json_raw(t, text + unescaped, at - unescaped)
        if step == 1:
            put_escaped(t, text[at])
        else:
            json_raw(t, REPLACEMENT, REPLACEMENT_SIZE)
            step = -step
        at += <size_t>step
        unescaped = at
    json_raw(t, text + unescaped, at - unescaped)
    json_put(t, b'"')


# --- the end ---

cdef bytes json_bytes(const JsonText* t):
    cdef bytes text
    cdef char* to
    if t.starved:
        raise MemoryError
    if t.out.size <= LARGE_TEXT:
        return PyBytes_FromStringAndSize(<char*>t.out.bytes, <Py_ssize_t>t.out.size)
    text = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>t.out.size)
    to = PyBytes_AS_STRING(text)
    with nogil:  # safe: no other code has a reference to the new object
        memcpy(to, t.out.bytes, t.out.size)
    return text


cdef bytes json_take(JsonText* t):
    try:
        return json_bytes(t)
    finally:
        json_free(t)


cdef void json_free(JsonText* t) noexcept nogil:
    buffer_free(&t.out)
    t.starved = False


# --- functions for Python ---

def json_of_bytes(data: bytes) -> bytes:
    """Returns the bytes as a JSON string of hex with 0x, with quotes."""
    cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
    json_hex(&t, <const uint8_t*><const char*>data, <size_t>len(data))
    return json_take(&t)


def json_of_quantity(number: int) -> bytes:
    """Returns the number as a JSON string of hex with 0x and without leading zeros, with quotes.

    Raises OverflowError if it is negative or longer than 256 bits.
    """
    cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
    cdef Word word
    word_from_int(&word, number)
    json_quantity_word(&t, &word)
    return json_take(&t)


def json_of_text(text: str | bytes) -> bytes:
    """Returns the text as a JSON string with quotes. Bytes are decoded as UTF-8."""
    cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
    cdef bytes raw
    raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
    json_string(&t, <const uint8_t*><const char*>raw, <size_t>len(raw))
    return json_take(&t)


fill_escapes()
