# Encodes and decodes values of the contract ABI with types that were compiled once.
from libc.stdint cimport uint8_t

from fastevm.core.primitives.buffer cimport Buffer


cdef enum AbiKind:
    ABI_UINT
    ABI_INT
    ABI_BOOL
    ABI_ADDRESS
    ABI_FIXED_BYTES
    ABI_BYTES
    ABI_STRING
    ABI_FIXED
    ABI_UFIXED
    ABI_LIST
    ABI_TUPLE


# The limits of one decoding: how many values and bytes may still be read. Without them, a few bytes
# could encode any number of values, because several offsets can point to the same bytes.
cdef struct DecodeBudget:
    Py_ssize_t values
    Py_ssize_t bytes


cdef class AbiType:
    cdef readonly str name          # canonical, as in signatures
    cdef int depth                  # levels of lists and tuples
    cdef AbiKind kind
    cdef int size                   # bits of a number, bytes of fixed bytes
    cdef int places                 # decimal places of fixed-point numbers
    cdef Py_ssize_t length          # number of items of a list; -1: any
    cdef readonly Py_ssize_t head   # bytes that the value takes in the head of a tuple
    cdef readonly bint is_dynamic
    cdef AbiType item               # type of a list's items
    cdef list members               # types of a tuple's members
    cdef list labels                # names of the members, shown in errors
    cdef object make                # class of the decoded tuple; None: tuple

    cdef int put(self, Buffer* out, object value) except -1
    cdef int put_number(self, Buffer* out, object value) except -1
    cdef int put_data(self, Buffer* out, object value) except -1
    cdef int put_list(self, Buffer* out, object value) except -1
    cdef int put_members(self, Buffer* out, object values) except -1
    cdef object get(self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left)
    cdef object get_word(self, const uint8_t* word)
    cdef object get_data(
        self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left
    )
    cdef object get_list(
        self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left
    )
    cdef tuple get_members(
        self, const uint8_t* data, Py_ssize_t size, Py_ssize_t at, DecodeBudget* left
    )
    cdef object finished(self, tuple values)
    cdef int set_depth(self, int depth) except -1
    cdef object indexed(self, object value)
    cdef object wrong(self, object value, str expected)


cdef bytes encode_after(AbiType inputs, bytes prefix, object values)
cdef tuple decode_members(AbiType outputs, bytes data, Py_ssize_t start)
