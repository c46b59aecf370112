# Reads bytes, addresses, hashes and slots that Python programs pass as arguments.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.string cimport memcpy

from fastevm.core.primitives.hashes cimport Address


cdef bytes other_bytes(object value, str name)
cdef bytes sized_bytes(object value, Py_ssize_t size, str name)
# Raises ValueError for hex text with a wrong EIP-55 checksum.
cdef bytes other_address(object value, str name)
# Returns an int from an int, an object with __index__, or 32 bytes.
cdef object slot_number(object value, str name)


cdef inline bytes bytes_like(object value, str name):
    return <bytes>value if PyBytes_CheckExact(value) else other_bytes(value, name)


cdef inline bytes address_bytes(object value, str name):
    if PyBytes_CheckExact(value) and PyBytes_GET_SIZE(value) == 20:
        return <bytes>value
    return other_address(value, name)


cdef inline int parse_address(object value, Address* out, str name) except -1:
    cdef bytes raw = address_bytes(value, name)
    memcpy(out.b, PyBytes_AS_STRING(raw), 20)
    return 0
