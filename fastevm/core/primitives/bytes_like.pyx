"""Reads bytes, addresses, hashes and slots that Python programs pass as arguments.

The functions accept bytes and subclasses such as HexBytes, other objects with a buffer (bytearray,
memoryview), and hex text with a 0x prefix. They refuse numbers, also those of numpy, because
``bytes(5)`` would be five zero bytes.
"""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.long cimport PyLong_Check
from cpython.number cimport PyNumber_Index
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_FromObject
from libc.stdint cimport uint8_t
from libc.string cimport memcmp

from fastevm.core.primitives.hex cimport hex_checksum, hex_decode


BytesLike = bytes | bytearray | memoryview | str  # for annotations
SHOWN = 40  # characters of an invalid text that an error shows
HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


cdef bytes hex_text_bytes(object value, str name):
    """Decodes hex text, also of a subclass of str. Raises ValueError with the reason."""
    cdef str text = PyUnicode_FromObject(value)
    cdef bytes raw, out
    cdef Py_ssize_t digits
    shown = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    if text[:2] not in ("0x", "0X"):
        raise ValueError(f"{name}: hex text begins with 0x, found {shown!r}")
    raw = text.encode("ascii", "replace")
    digits = PyBytes_GET_SIZE(raw) - 2
    if digits % 2:
        raise ValueError(
            f"{name}: hex text has an even number of digits, found {digits} in {shown!r}"
        )
    out = PyBytes_FromStringAndSize(NULL, digits // 2)
    if not hex_decode(<uint8_t*>PyBytes_AS_STRING(out), PyBytes_AS_STRING(raw) + 2, <size_t>digits):
        at = next(i for i, digit in enumerate(text[2:], 2) if digit not in HEX_DIGITS)
        raise ValueError(f"{name}: {text[at]!r} at position {at} is not a hex digit")
    return out


cdef bytes other_bytes(object value, str name):
    if isinstance(value, str):
        return hex_text_bytes(value, name)
    if isinstance(value, bytes):
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value))
    if has_items(value):
        return bytes(memoryview(value))
    raise TypeError(
        f"{name}: expected bytes or 0x-prefixed hex text, found {type(value).__name__}"
    )


cdef bint has_items(object value) except -1:
    """Returns whether a value has a buffer and is not a number: numpy's numbers have buffers too.
    """
    return PyObject_CheckBuffer(value) and memoryview(value).ndim > 0


cdef bytes sized_bytes(object value, Py_ssize_t size, str name):
    cdef bytes raw = bytes_like(value, name)
    if PyBytes_GET_SIZE(raw) != size:
        raise ValueError(f"{name}: expected {size} bytes, found {PyBytes_GET_SIZE(raw)}")
    return raw


cdef bytes other_address(object value, str name):
    cdef bytes raw
    cdef const char* text
    cdef Py_ssize_t size = 0
    cdef char[40] letters
    if not isinstance(value, str):
        return sized_bytes(value, 20, name)
    try:
        text = PyUnicode_AsUTF8AndSize(value, &size)
    except UnicodeEncodeError:  # a lone surrogate
        text = ""
    raw = PyBytes_FromStringAndSize(NULL, 20)
    if (
        size != 42 or text[0] != c"0" or (text[1] != c"x" and text[1] != c"X")
        or not hex_decode(<uint8_t*>PyBytes_AS_STRING(raw), text + 2, 40)
    ):
        raw = sized_bytes(value, 20, name)  # raises
    if has_both_cases(text + 2):
        hex_checksum(letters, <const uint8_t*>PyBytes_AS_STRING(raw))
        if memcmp(letters, text + 2, 40) != 0:
            expected = letters[:40].decode()
            raise ValueError(f"{name}: wrong checksum in {value}, expected 0x{expected}")
    return raw


cdef bint has_both_cases(const char* digits) noexcept:
    """Whether 40 hex digits contain upper-case and lower-case letters."""
    cdef bint upper = False, lower = False
    cdef int i
    for i in range(40):
        upper |= c"A" <= digits[i] <= c"F"
        lower |= digits[i] >= c"a"
    return upper and lower


cdef object slot_number(object value, str name):
    if PyLong_Check(value):
        return value
    if isinstance(value, str) or has_items(value):
        return int.from_bytes(sized_bytes(value, 32, name), "big")
    try:
        return PyNumber_Index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an int or 32 bytes, found {type(value).__name__}") from None


# --- Python functions ---

def bytes_of(value: object, name: str = "data") -> bytes:
    """Returns the bytes of a `BytesLike` value. ``name`` is shown in errors.

    Raises ValueError for text that is not hex, TypeError for other values.
    """
    return bytes_like(value, name)


def address_of(value: object, name: str = "address") -> bytes:
    """Returns the 20 bytes of an address. Raises ValueError for other sizes and for a wrong
    checksum (EIP-55).
    """
    return address_bytes(value, name)


def word_of(value: object, name: str = "slot") -> int:
    """Returns an int from an int or 32 bytes."""
    return slot_number(value, name)
