# 20-byte addresses and 32-byte hashes as C values.
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp, memcpy


cdef struct Address:
    uint8_t b[20]


cdef struct Hash:
    uint8_t b[32]


cdef inline bint address_eq(const Address* a, const Address* b) noexcept nogil:
    return memcmp(a, b, 20) == 0


cdef inline bint hash_eq(const Hash* a, const Hash* b) noexcept nogil:
    return memcmp(a, b, 32) == 0
