# Bytes from Python that must have a certain size, such as addresses and hashes.
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_Check, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t


# Returns the content of a bytes object, valid as long as the object. Raises ValueError for another
# type or size.
cdef inline const uint8_t* exactly(object value, Py_ssize_t size, str name) except NULL:
    if not PyBytes_Check(value):
        raise ValueError(f"{name}: expected {size} bytes, found {type(value).__name__}")
    if PyBytes_GET_SIZE(value) != size:
        raise ValueError(f"{name}: expected {size} bytes, found {PyBytes_GET_SIZE(value)}")
    return <const uint8_t*>PyBytes_AS_STRING(value)
