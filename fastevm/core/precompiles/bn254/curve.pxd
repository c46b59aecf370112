# The two groups of BN254: points as bytes, sums, multiples, and membership of the second group.
from libc.stdint cimport uint8_t

from fastevm.core.precompiles.bn254.field cimport Fp, Fp2, fp_is_zero, fp2_is_zero


cdef struct G1Affine:         # y^2 = x^3 + 3; (0, 0) is the point at infinity
    Fp x
    Fp y


cdef struct G2Affine:         # y^2 = x^3 + 3 / (9 + u); (0, 0) is infinity
    Fp2 x
    Fp2 y


cdef inline bint g1_is_infinity(const G1Affine* p) noexcept nogil:
    return fp_is_zero(&p.x) and fp_is_zero(&p.y)


cdef inline bint g2_is_infinity(const G2Affine* p) noexcept nogil:
    return fp2_is_zero(&p.x) and fp2_is_zero(&p.y)


# Decodes 64 bytes: x, y. Returns False if a coordinate is not below the prime or the point is not
# on the curve. All points of the curve are in the group.
cdef bint g1_load(G1Affine* r, const uint8_t* p) noexcept nogil
cdef void g1_store(uint8_t* p, const G1Affine* a) noexcept nogil
cdef void g1_add(G1Affine* r, const G1Affine* a, const G1Affine* b) noexcept nogil
# Multiplies a point by any 32-byte big-endian number.
cdef void g1_mul(G1Affine* r, const G1Affine* a, const uint8_t* scalar) noexcept nogil

# Decodes 128 bytes: x, y, each with its imaginary part first. Returns False if a coordinate is not
# below the prime or the point is not on the curve.
cdef bint g2_load(G2Affine* r, const uint8_t* p) noexcept nogil
cdef bint g2_in_group(const G2Affine* p) noexcept nogil

# 3 / (9 + u)
cdef Fp2 TWIST_B
