"""Merges sorted 16-byte records without creating a Python object for each record."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from fastevm.core.primitives.intrinsics cimport load64_big


cdef enum:
    SIZE = 16       # bytes of a record: two big-endian words, compared in this order

RECORD_SIZE = SIZE


cdef inline bint goes_first(const uint8_t* one, const uint8_t* other) noexcept nogil:
    cdef uint64_t a = load64_big(one), b = load64_big(other)
    return a < b or (a == b and load64_big(one + 8) <= load64_big(other + 8))


cdef void merge(
    uint8_t* out, const uint8_t* left, size_t* left_size, const uint8_t* right, size_t* right_size
) noexcept nogil:
    """Writes records in order until either input is exhausted. Sets both sizes to the bytes read.
    """
    cdef size_t i = 0, j = 0
    while i < left_size[0] and j < right_size[0]:
        if goes_first(left + i, right + j):
            memcpy(out, left + i, SIZE)
            i += SIZE
        else:
            memcpy(out, right + j, SIZE)
            j += SIZE
        out += SIZE
    left_size[0], right_size[0] = i, j


def merge_records(left: bytes, right: bytes) -> tuple[bytes, int, int]:
    """Merges two sequences of sorted 16-byte records until either is exhausted.

    Returns the merged records and how many bytes were read from each sequence. Raises ValueError if
    a length is not a multiple of 16.
    """
    cdef size_t left_size = <size_t>len(left), right_size = <size_t>len(right)
    cdef const uint8_t* left_data = <const uint8_t*>PyBytes_AS_STRING(left)
    cdef const uint8_t* right_data = <const uint8_t*>PyBytes_AS_STRING(right)
    cdef bytes merged
    cdef uint8_t* out
    if left_size % SIZE != 0 or right_size % SIZE != 0:
        raise ValueError(f"records are {SIZE} bytes each")
    merged = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>(left_size + right_size))
    out = <uint8_t*>PyBytes_AS_STRING(merged)
    with nogil:
        merge(out, left_data, &left_size, right_data, &right_size)
    return merged[:<Py_ssize_t>(left_size + right_size)], left_size, right_size
