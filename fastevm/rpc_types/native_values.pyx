"""Reads numbers, addresses and bytes from hex text, ints or bytes."""

from cpython.buffer cimport PyObject_CheckBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.bytes_like cimport bytes_like
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.hex cimport hex_decode
from fastevm.core.primitives.word cimport (
    Word, word_fits64, word_from_int, word_load, word_to_int,
)


cdef const char* digits_of(object text, size_t* count, str name) except NULL:
    """The digits of hex text, which may be a subclass of str."""
    cdef Py_ssize_t size = 0
    cdef const char* letters = PyUnicode_AsUTF8AndSize(text, &size)
    if size < 2 or letters[0] != c"0" or (letters[1] != c"x" and letters[1] != c"X"):
        raise ValueError(f"{name}: hex digits begin with 0x, not {text[:40]!r}")
    count[0] = <size_t>size - 2
    return letters + 2


cdef int read_word(Word* out, object value, str name) except -1:
    cdef size_t count = 0
    cdef const char* digits
    cdef char padded[64]
    cdef uint8_t word[32]
    if isinstance(value, str):
        digits = digits_of(value, &count, name)
        if 0 < count <= 64:
            memset(padded, c"0", 64)
            memcpy(padded + (64 - count), digits, count)
            if hex_decode(word, padded, 64):
                word_load(out, word)
                return 0
        raise ValueError(f"{name}: expected a quantity of at most 256 bits, found {value[:80]!r}")
    try:
        word_from_int(out, value)
    except TypeError:
        raise ValueError(f"{name}: expected a quantity, found {type(value).__name__}") from None
    except OverflowError:
        raise ValueError(f"{name}: expected 0 to 2**256 - 1, found {value}") from None
    return 0


cdef int read_uint64(uint64_t* out, object value, str name) except -1:
    cdef Word word
    read_word(&word, value, name)
    if not word_fits64(&word):
        raise ValueError(f"{name}: expected at most 64 bits, found {value}")
    out[0] = word.d[0]
    return 0


cdef int read_address(Address* out, object value, str name) except -1:
    cdef size_t count = 0
    cdef const char* digits
    cdef bytes raw
    if isinstance(value, str):
        digits = digits_of(value, &count, name)
        if count == 40 and hex_decode(out.b, digits, 40):
            return 0
    elif PyObject_CheckBuffer(value):
        raw = bytes_like(value, name)
        if PyBytes_GET_SIZE(raw) == 20:
            memcpy(out.b, PyBytes_AS_STRING(raw), 20)
            return 0
    raise ValueError(f"{name}: expected an address of 20 bytes, found {value!r:.80}")


# ----------------------------------------------------------------------------------------------
# conversions to Python values

def quantity_of(value: object, name: str) -> int:
    """Returns an int from hex text or an int. Raises ValueError beyond 256 bits."""
    cdef Word word
    read_word(&word, value, name)
    return word_to_int(&word)


def uint64_of(value: object, name: str) -> int:
    """Returns an int from hex text or an int. Raises ValueError beyond 64 bits."""
    cdef uint64_t number = 0
    read_uint64(&number, value, name)
    return number


def address_of(value: object, name: str) -> bytes:
    """Returns 20 bytes from hex text or bytes. Raises ValueError for anything else."""
    cdef Address address
    read_address(&address, value, name)
    return address.b[:20]


def bytes_of(value: object, name: str) -> bytes:
    """Returns bytes from bytes or hex text with an even number of digits. Raises ValueError
    otherwise.
    """
    cdef size_t count = 0
    if isinstance(value, str):
        digits_of(value, &count, name)
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise ValueError(f"{name}: expected an even number of hex digits") from None
    if PyObject_CheckBuffer(value):
        return bytes_like(value, name)
    raise ValueError(f"{name}: expected bytes or hex text, found {type(value).__name__}")


def word_of(value: object, name: str) -> int:
    """Returns a 256-bit number from 32 bytes, hex text or an int."""
    if PyObject_CheckBuffer(value) and memoryview(value).ndim > 0:  # no number of numpy
        if memoryview(value).nbytes == 32:
            return int.from_bytes(value, "big")
    return quantity_of(value, name)
