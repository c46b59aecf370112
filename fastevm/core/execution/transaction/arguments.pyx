"""Converts arguments from Python programs: numbers and lists of hashes."""

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t

from fastevm.core.execution.transaction.transaction_lists cimport hash_entries

from fastevm.core.primitives.suggestion import nearest


cdef object integer(object value, str name):
    """Returns an int, converted with __index__ if needed. A float is refused because it would be
    truncated.
    """
    if PyLong_Check(value):
        return value
    try:
        return PyNumber_Index(value)
    except TypeError:
        raise TypeError(f"{name} is an int, not {type(value).__name__}") from None


cdef int64_t gas_of(object value) except? -1:
    cdef int beyond = 0
    cdef int64_t gas = PyLong_AsLongLongAndOverflow(integer(value, "gas"), &beyond)
    if gas < 0 and beyond <= 0:
        raise ValueError("gas cannot be negative")
    if beyond:
        raise OverflowError("gas does not fit 63 bits")
    return gas


cdef object unknown_name(str what, object name, object known):
    """Returns the TypeError for an unknown name."""
    near = nearest(str(name), known)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return TypeError(f"{what} has no {name!r}: {hint}")


cdef bytes hash_run(object hashes):
    """Concatenates hashes of 32 bytes. Raises ValueError for other sizes."""
    return b"".join(hash_entries(hashes, "blob_hashes"))


cdef list hashes_in(bytes run):
    """Returns the hashes that ``hash_run`` joined, because an iterator can be read only once."""
    return [run[at:at + 32] for at in range(0, len(run), 32)]


cdef list ancestor_hashes(object hashes):
    """Returns the hashes as a new list. Raises ValueError for more than 256 hashes, or for a hash
    that is not 32 bytes.
    """
    cdef list found = hash_entries(hashes, "block_hashes")
    if len(found) > 256:
        raise ValueError(f"block_hashes: expected at most 256 hashes, found {len(found)}")
    return found
