"""Hexadecimal text: bytes with 0x, quantities without leading zeros, address checksums."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport SIZE_MAX
from libc.string cimport memcpy

from fastevm.core.primitives.buffer cimport buffer_reserve
from fastevm.core.primitives.intrinsics cimport clz64
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport word_bits, word_fits64, word_store


cdef extern from "fastevm/core/primitives/hex.h" nogil:
    size_t hex_encode_blocks "fe_hex_encode_blocks"(char* out, const uint8_t* data, size_t size)
    size_t hex_decode_blocks "fe_hex_decode_blocks"(
        uint8_t* out, const char* text, size_t size, uint8_t* wrong
    )


cdef extern from "Python.h":
    object PyUnicode_New(Py_ssize_t size, Py_UCS4 largest)
    void* PyUnicode_DATA(object text)


cdef enum:
    NOT_A_DIGIT = 0xff
    QUANTITY_DIGITS = 64      # hex digits of a 256-bit word
    ADDRESS_SIZE = 20

# Tables: the two digits of each byte, and the value of each character.
cdef char[512] PAIRS
cdef uint8_t[256] VALUES


cdef void fill_tables() noexcept nogil:
    cdef const char* digits = "0123456789abcdef"
    cdef int i
    for i in range(256):
        PAIRS[2 * i] = digits[i >> 4]
        PAIRS[2 * i + 1] = digits[i & 15]
        VALUES[i] = NOT_A_DIGIT
    for i in range(10):
        VALUES[c'0' + i] = <uint8_t>i
    for i in range(6):
        VALUES[c'a' + i] = <uint8_t>(10 + i)
        VALUES[c'A' + i] = <uint8_t>(10 + i)


# --- C level ---

cdef void hex_encode(char* out, const uint8_t* data, size_t size) noexcept nogil:
    cdef size_t i
    for i in range(hex_encode_blocks(out, data, size), size):
        memcpy(out + 2 * i, &PAIRS[2 * data[i]], 2)


cdef bint hex_decode(uint8_t* out, const char* text, size_t digits) noexcept nogil:
    cdef const uint8_t* p = <const uint8_t*>text
    cdef size_t i
    cdef uint8_t high, low, wrong = 0
    for i in range(hex_decode_blocks(out, text, digits // 2, &wrong), digits // 2):
        high = VALUES[p[2 * i]]
        low = VALUES[p[2 * i + 1]]
        wrong |= high | low
        out[i] = <uint8_t>(high << 4 | (low & 15))
    return (wrong & 0xf0) == 0


# Appends 0x and reserves space for `digits` digits. Returns their address; NULL if memory is
# exhausted.
cdef char* append_prefix(Buffer* buffer, size_t digits) noexcept nogil:
    cdef char* out
    if not buffer_reserve(buffer, buffer.size + 2 + digits):
        return NULL
    out = <char*>buffer.bytes + buffer.size
    out[0] = c'0'
    out[1] = c'x'
    buffer.size += 2 + digits
    return out + 2


cdef bint hex_append(Buffer* buffer, const uint8_t* data, size_t size) noexcept nogil:
    cdef char* out
    if size > (SIZE_MAX - 2 - buffer.size) // 2:
        return False
    out = append_prefix(buffer, 2 * size)
    if out == NULL:
        return False
    hex_encode(out, data, size)
    return True


cdef bint hex_append_quantity(Buffer* buffer, uint64_t value) noexcept nogil:
    cdef size_t digits = 1 if value == 0 else <size_t>(67 - clz64(value)) // 4
    cdef char* out = append_prefix(buffer, digits)
    if out == NULL:
        return False
    while digits > 0:
        digits -= 1
        out[digits] = PAIRS[2 * (value & 15) + 1]
        value >>= 4
    return True


cdef bint hex_append_quantity_word(Buffer* buffer, const Word* value) noexcept nogil:
    cdef uint8_t raw[32]
    cdef char text[QUANTITY_DIGITS]
    cdef size_t digits
    cdef char* out
    if word_fits64(value):
        return hex_append_quantity(buffer, value.d[0])
    word_store(raw, value)
    hex_encode(text, raw, 32)
    digits = <size_t>(word_bits(value) + 3) // 4
    out = append_prefix(buffer, digits)
    if out == NULL:
        return False
    memcpy(out, text + QUANTITY_DIGITS - digits, digits)
    return True


cdef void hex_checksum(char* out, const uint8_t* address) noexcept nogil:
    cdef uint8_t[32] digest
    cdef int i
    hex_encode(out, address, ADDRESS_SIZE)
    keccak256(digest, <const uint8_t*>out, 2 * ADDRESS_SIZE)
    for i in range(2 * ADDRESS_SIZE):
        if out[i] >= c'a' and (digest[i >> 1] >> (0 if i & 1 else 4)) & 8:
            out[i] -= c'a' - c'A'


# --- Python functions ---

def hex_bytes(data: bytes | bytearray | memoryview) -> str:
    """Returns the bytes as lower-case hex with a 0x prefix; ``0x`` for no bytes."""
    cdef Py_buffer view
    cdef char* out
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        text = PyUnicode_New(2 + 2 * view.len, 127)
        out = <char*>PyUnicode_DATA(text)
        out[0] = c'0'
        out[1] = c'x'
        hex_encode(out + 2, <const uint8_t*>view.buf, <size_t>view.len)
    finally:
        PyBuffer_Release(&view)
    return text


def from_hex(text: str) -> bytes:
    """Decodes 0x-prefixed hex in either case.

    Raises ValueError if the prefix is missing, the number of digits is odd or a character is not a
    hex digit.
    """
    cdef bytes raw, out
    cdef size_t digits
    if not isinstance(text, str):
        raise TypeError(f"expected a str, not {type(text).__name__}")
    raw = text.encode("utf-8", "surrogatepass")
    if not (raw.startswith(b"0x") or raw.startswith(b"0X")):
        raise ValueError("hex string without 0x prefix")
    digits = <size_t>len(raw) - 2
    if len(text) % 2 != 0:
        raise ValueError("hex string of odd length")
    out = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(digits // 2))
    if not hex_decode(<uint8_t*>PyBytes_AS_STRING(out), PyBytes_AS_STRING(raw) + 2, digits):
        raise ValueError(_first_wrong_digit(text))
    return out


def _first_wrong_digit(text: str) -> str:
    for position, character in enumerate(text[2:], start=2):
        if character not in "0123456789abcdefABCDEF":
            return f"invalid hex digit {character!r} at position {position}"
    raise AssertionError("every digit is right")


def quantity(number: int) -> str:
    """Returns the number as hex with a 0x prefix and no leading zeros; ``0x0`` for zero.

    Raises ValueError if the number is negative, because quantities have no sign.
    """
    if number < 0:
        raise ValueError("a quantity cannot be negative")
    return hex(number)


def hex_word(number: int) -> str:
    """Returns the number as 64 hex digits with a 0x prefix, the format of slots and words.

    Raises OverflowError if the number is negative or has more than 256 bits.
    """
    return hex_bytes(number.to_bytes(32, "big"))


def checksum_address(address: bytes) -> str:
    """Returns the 20 bytes in the mixed case of EIP-55. Raises ValueError for another length."""
    cdef char[2 * ADDRESS_SIZE] text
    if len(address) != ADDRESS_SIZE:
        raise ValueError(f"an address has {ADDRESS_SIZE} bytes, not {len(address)}")
    hex_checksum(text, <const uint8_t*>PyBytes_AS_STRING(address))
    return "0x" + text[:2 * ADDRESS_SIZE].decode("ascii")


fill_tables()
