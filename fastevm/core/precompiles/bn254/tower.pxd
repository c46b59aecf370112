# The sextic and twelfth-degree extensions for BN254's pairing.
from fastevm.core.precompiles.bn254.field cimport Fp2


cdef struct Fp6:              # c0 + c1 v + c2 v^2, with v^3 = 9 + u
    Fp2 c0
    Fp2 c1
    Fp2 c2


cdef struct Fp12:             # c0 + c1 w, with w^2 = v
    Fp6 c0
    Fp6 c1


# Results may alias operands.
cdef void fp12_one(Fp12* r) noexcept nogil
cdef bint fp12_is_one(const Fp12* a) noexcept nogil
cdef void fp12_mul(Fp12* r, const Fp12* a, const Fp12* b) noexcept nogil
# r = a (l0 + l1 w + l3 w^3), the form of a line.
cdef void fp12_mul_line(
    Fp12* r, const Fp12* a, const Fp2* l0, const Fp2* l1, const Fp2* l3,
) noexcept nogil
# r = a (1 + l1 w + l3 w^3)
cdef void fp12_mul_unit_line(Fp12* r, const Fp12* a, const Fp2* l1, const Fp2* l3) noexcept nogil
cdef void fp12_sqr(Fp12* r, const Fp12* a) noexcept nogil
cdef void fp12_inverse(Fp12* r, const Fp12* a) noexcept nogil
# a^(p^6); also the inverse if a^(p^6 + 1) = 1.
cdef void fp12_conjugate(Fp12* r, const Fp12* a) noexcept nogil
# a^(p^power), for powers 1, 2 and 3.
cdef void fp12_frobenius(Fp12* r, const Fp12* a, int power) noexcept nogil
# The square if a^(p^4 - p^2 + 1) = 1.
cdef void fp12_cyclotomic_sqr(Fp12* r, const Fp12* a) noexcept nogil

# (9 + u)^(i (p^power - 1) / 6) at [power - 1][i]: the factor of w^i under the Frobenius map a ->
# a^(p^power).
cdef Fp2 FROBENIUS[3][6]
