# The few functions of GMP that the precompiles need, found inside gmpy2; callable from any thread
# without the GIL.
from libc.stdint cimport uint64_t


cdef struct Integer:          # GMP's mpz_t
    int allocated             # limbs; 0 for an integer that borrows its limbs
    int size                  # limbs in use, negative for a negative number
    uint64_t* limbs


cdef struct Gmp:
    void (*init)(Integer* r) noexcept nogil
    void (*clear)(Integer* r) noexcept nogil
    void (*import_bytes)(
        Integer* r, size_t count, int order, size_t size, int endian, size_t nails,
        const void* data,
    ) noexcept nogil
    void* (*export_bytes)(
        void* data, size_t* count, int order, size_t size, int endian, size_t nails,
        const Integer* a,
    ) noexcept nogil
    size_t (*digits)(const Integer* a, int base) noexcept nogil
    void (*power_modulo)(
        Integer* r, const Integer* base, const Integer* exponent, const Integer* modulus,
    ) noexcept nogil


cdef Gmp gmp


# Loads an integer from big-endian bytes.
cdef inline void integer_load(Integer* r, const void* data, size_t size) noexcept nogil:
    gmp.import_bytes(r, size, 1, 1, 1, 0, data)


# Writes an integer as big-endian bytes without leading zeros. Returns the number of bytes written.
cdef inline size_t integer_store(void* out, const Integer* a) noexcept nogil:
    cdef size_t count = 0
    gmp.export_bytes(out, &count, 1, 1, 1, 0, a)
    return count


cdef inline size_t integer_bytes(const Integer* a) noexcept nogil:
    return 0 if a.size == 0 else (gmp.digits(a, 2) + 7) // 8


# Makes r a read-only operand that borrows `count` limbs, least significant first.
cdef inline void integer_view(Integer* r, const uint64_t* limbs, int count) noexcept nogil:
    while count > 0 and limbs[count - 1] == 0:
        count -= 1
    r.allocated = 0
    r.size = count
    r.limbs = <uint64_t*>limbs
