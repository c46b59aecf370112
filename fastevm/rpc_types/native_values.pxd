# Numbers, addresses and bytes from hex text, or from ints and bytes as they are.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# ValueError names what was read: a quantity of at most 256 or 64 bits, an address, even digits.
cdef int read_word(Word* out, object value, str name) except -1
cdef int read_uint64(uint64_t* out, object value, str name) except -1
cdef int read_address(Address* out, object value, str name) except -1
# The digits behind 0x, and how many.
cdef const char* digits_of(str text, size_t* count, str name) except NULL
