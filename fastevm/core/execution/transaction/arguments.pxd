# Converts arguments from Python programs. All functions raise TypeError or ValueError with the
# reason.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.primitives.word cimport Word, uint64_from_named, word_from_named


# Returns an int, converted with __index__ if needed. A float is refused because it would be
# truncated.
cdef object integer(object value, str name)


cdef inline int word_argument(Word* out, object value, str name) except -1:
    """Reads a word from an int or an object with __index__."""
    return word_from_named(out, integer(value, name), name)


cdef inline uint64_t uint64_argument(object value, str name) except? 0:
    """Reads a 64-bit integer from an int or an object with __index__."""
    return uint64_from_named(integer(value, name), name)


# Returns the gas of a message, which must not be negative.
cdef int64_t gas_of(object value) except? -1
# Returns the TypeError for an unknown name, with the nearest known name as a suggestion.
cdef object unknown_name(str what, object name, object known)
# Concatenates hashes of 32 bytes.
cdef bytes hash_run(object hashes)
# Splits the result of ``hash_run`` into hashes.
cdef list hashes_in(bytes run)
# Returns the hashes as a new list: at most 256, of 32 bytes each.
cdef list ancestor_hashes(object hashes)
