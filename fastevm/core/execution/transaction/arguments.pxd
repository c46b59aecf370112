# Reads what Python programs pass to a machine. All raise TypeError or ValueError, which say why.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word, uint64_from_named, word_from_named


cdef int parse_other_address(object value, Address* out) except -1
cdef bytes bytes_of_other(object value)


cdef inline int parse_address(object value, Address* out) except -1:
    """20 bytes, or 40 hex digits with 0x before them."""
    if PyBytes_CheckExact(value) and PyBytes_GET_SIZE(value) == 20:
        memcpy(out.b, PyBytes_AS_STRING(value), 20)
        return 0
    return parse_other_address(value, out)


cdef inline bytes as_bytes(object value):
    """Bytes as they are, or of a 0x-prefixed string."""
    return <bytes>value if PyBytes_CheckExact(value) else bytes_of_other(value)


# An int as it is, or what stands for one; a float, which would be cut, is refused.
cdef object integer(object value, str name)


cdef inline int word_argument(Word* out, object value, str name) except -1:
    """A word from what is an int, or stands for one, and fits."""
    return word_from_named(out, integer(value, name), name)


cdef inline uint64_t uint64_argument(object value, str name) except? 0:
    """The same in 64 bits."""
    return uint64_from_named(integer(value, name), name)


# Gas of a message, not negative.
cdef int64_t gas_of(object value) except? -1
# The TypeError for a name that is none of those known, with the nearest one.
cdef object unknown_name(str what, object name, object known)
# Hashes of 32 bytes one behind the other.
cdef bytes hash_run(object hashes)
# A list of its own, of at most 256 hashes of 32 bytes.
cdef list ancestor_hashes(object hashes)
