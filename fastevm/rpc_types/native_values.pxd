# Reads numbers, addresses and bytes from hex text, ints or bytes.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# Read a quantity of at most 256 or 64 bits, or an address. Raise ValueError with the member's
# name.
cdef int read_word(Word* out, object value, str name) except -1
cdef int read_uint64(uint64_t* out, object value, str name) except -1
cdef int read_address(Address* out, object value, str name) except -1
# Returns the hex digits after 0x, and their number in `count`.
cdef const char* digits_of(object text, size_t* count, str name) except NULL
