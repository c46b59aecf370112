"""Converts arguments from Python programs: addresses, data, numbers, hashes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_Check
from cpython.number cimport PyNumber_Index
from libc.stdint cimport int64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.hex cimport hex_decode

from fastevm.core.primitives.suggestion import nearest


cdef int parse_other_address(object value, Address* out) except -1:
    cdef bytes text
    if PyBytes_CheckExact(value):
        if PyBytes_GET_SIZE(value) != 20:
            raise ValueError(f"an address has 20 bytes, not {len(value)}")
        return parse_address(value, out)
    if isinstance(value, str):
        text = (<str>value).encode("ascii", "replace")
        if (
            PyBytes_GET_SIZE(text) != 42 or text[:2] not in (b"0x", b"0X")
            or not hex_decode(out.b, PyBytes_AS_STRING(text) + 2, 40)
        ):
            raise ValueError(f"not an address: {value!r}")
        return 0
    if isinstance(value, bytearray | memoryview):
        return parse_other_address(bytes(value), out)
    raise TypeError(f"an address is 20 bytes or a 0x-prefixed string, not {type(value).__name__}")


cdef bytes bytes_of_other(object value):
    if isinstance(value, str):
        if value[:2] not in ("0x", "0X"):
            raise ValueError(f"hex data must begin with 0x: {value[:20]!r}")
        return bytes.fromhex(value[2:])
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"data is bytes or a 0x-prefixed string, not {type(value).__name__}")


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
    found = [as_bytes(item) for item in hashes]
    if any([len(item) != 32 for item in found]):
        raise ValueError("hashes have 32 bytes each")
    return b"".join(found)


cdef list ancestor_hashes(object hashes):
    """Returns a new list of at most 256 hashes of 32 bytes. Raises ValueError otherwise."""
    cdef list found = list(hashes)
    if len(found) > 256 or any(
        not PyBytes_CheckExact(item) or len(item) != 32 for item in found
    ):
        raise ValueError("block_hashes are at most 256 hashes of 32 bytes")
    return found
