"""The sextic and twelfth-degree extensions for BN254's pairing."""

from fastevm.core.precompiles.bn254.field cimport (
    fp2_add, fp2_conjugate, fp2_copy, fp2_double, fp2_eq, fp2_from_ints, fp2_inverse, fp2_is_zero,
    fp2_mul, fp2_mul_xi, fp2_neg, fp2_one, fp2_sqr, fp2_sub, fp2_zero,
)

from fastevm.core.precompiles.bn254.field import PRIME


# --- the sextic extension ---

cdef inline void fp6_add(Fp6* r, const Fp6* a, const Fp6* b) noexcept nogil:
    fp2_add(&r.c0, &a.c0, &b.c0)
    fp2_add(&r.c1, &a.c1, &b.c1)
    fp2_add(&r.c2, &a.c2, &b.c2)


cdef inline void fp6_sub(Fp6* r, const Fp6* a, const Fp6* b) noexcept nogil:
    fp2_sub(&r.c0, &a.c0, &b.c0)
    fp2_sub(&r.c1, &a.c1, &b.c1)
    fp2_sub(&r.c2, &a.c2, &b.c2)


cdef inline void fp6_neg(Fp6* r, const Fp6* a) noexcept nogil:
    fp2_neg(&r.c0, &a.c0)
    fp2_neg(&r.c1, &a.c1)
    fp2_neg(&r.c2, &a.c2)


# r = a v
cdef inline void fp6_mul_v(Fp6* r, const Fp6* a) noexcept nogil:
    cdef Fp2 t
    fp2_mul_xi(&t, &a.c2)
    fp2_copy(&r.c2, &a.c1)
    fp2_copy(&r.c1, &a.c0)
    fp2_copy(&r.c0, &t)


# t = (a + b)(c + d) - ac - bd = ad + bc, given ac and bd.
cdef inline void cross(
    Fp2* t, const Fp2* a, const Fp2* b, const Fp2* c, const Fp2* d, const Fp2* ac, const Fp2* bd,
) noexcept nogil:
    cdef Fp2 x, y
    fp2_add(&x, a, b)
    fp2_add(&y, c, d)
    fp2_mul(t, &x, &y)
    fp2_sub(t, t, ac)
    fp2_sub(t, t, bd)


# Karatsuba: six products instead of nine.
cdef void fp6_mul(Fp6* r, const Fp6* a, const Fp6* b) noexcept nogil:
    cdef Fp2 v0, v1, v2, t0, t1, t2
    fp2_mul(&v0, &a.c0, &b.c0)
    fp2_mul(&v1, &a.c1, &b.c1)
    fp2_mul(&v2, &a.c2, &b.c2)
    cross(&t0, &a.c1, &a.c2, &b.c1, &b.c2, &v1, &v2)
    cross(&t1, &a.c0, &a.c1, &b.c0, &b.c1, &v0, &v1)
    cross(&t2, &a.c0, &a.c2, &b.c0, &b.c2, &v0, &v2)
    fp2_mul_xi(&t0, &t0)
    fp2_add(&r.c0, &v0, &t0)
    fp2_add(&r.c2, &t2, &v1)
    fp2_mul_xi(&v2, &v2)
    fp2_add(&r.c1, &t1, &v2)


# r = a (b0 + b1 v): five products.
cdef void fp6_mul_01(Fp6* r, const Fp6* a, const Fp2* b0, const Fp2* b1) noexcept nogil:
    cdef Fp2 v0, v1, t0, t1, t2
    fp2_mul(&v0, &a.c0, b0)
    fp2_mul(&v1, &a.c1, b1)
    fp2_mul(&t0, &a.c2, b1)
    cross(&t1, &a.c0, &a.c1, b0, b1, &v0, &v1)
    fp2_mul(&t2, &a.c2, b0)
    fp2_mul_xi(&t0, &t0)
    fp2_add(&r.c0, &v0, &t0)
    fp2_copy(&r.c1, &t1)
    fp2_add(&r.c2, &t2, &v1)


# r = a b for b in the quadratic extension.
cdef void fp6_scale(Fp6* r, const Fp6* a, const Fp2* b) noexcept nogil:
    fp2_mul(&r.c0, &a.c0, b)
    fp2_mul(&r.c1, &a.c1, b)
    fp2_mul(&r.c2, &a.c2, b)


# Inverts through the adjugate of the matrix of multiplication by a.
cdef void fp6_inverse(Fp6* r, const Fp6* a) noexcept nogil:
    cdef Fp2 t0, t1, t2, x, norm
    fp2_mul(&x, &a.c1, &a.c2)
    fp2_mul_xi(&x, &x)
    fp2_sqr(&t0, &a.c0)
    fp2_sub(&t0, &t0, &x)
    fp2_mul(&x, &a.c0, &a.c1)
    fp2_sqr(&t1, &a.c2)
    fp2_mul_xi(&t1, &t1)
    fp2_sub(&t1, &t1, &x)
    fp2_mul(&x, &a.c0, &a.c2)
    fp2_sqr(&t2, &a.c1)
    fp2_sub(&t2, &t2, &x)
    # norm = a0 t0 + (9 + u)(a2 t1 + a1 t2)
    fp2_mul(&norm, &a.c2, &t1)
    fp2_mul(&x, &a.c1, &t2)
    fp2_add(&norm, &norm, &x)
    fp2_mul_xi(&norm, &norm)
    fp2_mul(&x, &a.c0, &t0)
    fp2_add(&norm, &norm, &x)
    fp2_inverse(&norm, &norm)
    fp2_mul(&r.c0, &t0, &norm)
    fp2_mul(&r.c1, &t1, &norm)
    fp2_mul(&r.c2, &t2, &norm)


# --- the twelfth-degree extension ---

cdef void fp12_one(Fp12* r) noexcept nogil:
    fp2_one(&r.c0.c0)
    fp2_zero(&r.c0.c1)
    fp2_zero(&r.c0.c2)
    fp2_zero(&r.c1.c0)
    fp2_zero(&r.c1.c1)
    fp2_zero(&r.c1.c2)


cdef bint fp12_is_one(const Fp12* a) noexcept nogil:
    cdef Fp2 one
    fp2_one(&one)
    return (
        fp2_eq(&a.c0.c0, &one) and fp2_is_zero(&a.c0.c1) and fp2_is_zero(&a.c0.c2)
        and fp2_is_zero(&a.c1.c0) and fp2_is_zero(&a.c1.c1) and fp2_is_zero(&a.c1.c2)
    )


cdef void fp12_mul(Fp12* r, const Fp12* a, const Fp12* b) noexcept nogil:
    cdef Fp6 v0, v1, x, y
    fp6_mul(&v0, &a.c0, &b.c0)
    fp6_mul(&v1, &a.c1, &b.c1)
    fp6_add(&x, &a.c0, &a.c1)
    fp6_add(&y, &b.c0, &b.c1)
    fp6_mul(&x, &x, &y)
    fp6_sub(&x, &x, &v0)
    fp6_sub(&r.c1, &x, &v1)
    fp6_mul_v(&v1, &v1)
    fp6_add(&r.c0, &v0, &v1)


cdef void fp12_mul_line(
    Fp12* r, const Fp12* a, const Fp2* l0, const Fp2* l1, const Fp2* l3,
) noexcept nogil:
    cdef Fp6 v0, v1, x
    cdef Fp2 l01
    fp6_scale(&v0, &a.c0, l0)
    fp6_mul_01(&v1, &a.c1, l1, l3)
    fp6_add(&x, &a.c0, &a.c1)
    fp2_add(&l01, l0, l1)
    fp6_mul_01(&x, &x, &l01, l3)
    fp6_sub(&x, &x, &v0)
    fp6_sub(&r.c1, &x, &v1)
    fp6_mul_v(&v1, &v1)
    fp6_add(&r.c0, &v0, &v1)


cdef void fp12_mul_unit_line(
    Fp12* r, const Fp12* a, const Fp2* l1, const Fp2* l3,
) noexcept nogil:
    cdef Fp6 x, y
    fp6_mul_01(&x, &a.c0, l1, l3)
    fp6_mul_01(&y, &a.c1, l1, l3)
    fp6_mul_v(&y, &y)
    fp6_add(&r.c0, &a.c0, &y)
    fp6_add(&r.c1, &a.c1, &x)


# (a + b w)^2 = (a + b)(a + b v) - ab - ab v + 2ab w
cdef void fp12_sqr(Fp12* r, const Fp12* a) noexcept nogil:
    cdef Fp6 ab, x, y
    fp6_mul(&ab, &a.c0, &a.c1)
    fp6_add(&x, &a.c0, &a.c1)
    fp6_mul_v(&y, &a.c1)
    fp6_add(&y, &y, &a.c0)
    fp6_mul(&x, &x, &y)
    fp6_sub(&x, &x, &ab)
    fp6_mul_v(&y, &ab)
    fp6_sub(&r.c0, &x, &y)
    fp6_add(&r.c1, &ab, &ab)


# 1 / (a + b w) = (a - b w) / (a^2 - b^2 v)
cdef void fp12_inverse(Fp12* r, const Fp12* a) noexcept nogil:
    cdef Fp6 norm, t
    fp6_mul(&norm, &a.c0, &a.c0)
    fp6_mul(&t, &a.c1, &a.c1)
    fp6_mul_v(&t, &t)
    fp6_sub(&norm, &norm, &t)
    fp6_inverse(&norm, &norm)
    fp6_mul(&r.c0, &a.c0, &norm)
    fp6_neg(&norm, &norm)
    fp6_mul(&r.c1, &a.c1, &norm)


cdef void fp12_conjugate(Fp12* r, const Fp12* a) noexcept nogil:
    r.c0 = a.c0
    fp6_neg(&r.c1, &a.c1)


cdef inline void frobenius_term(Fp2* r, const Fp2* a, int power, int exponent) noexcept nogil:
    if power & 1:
        fp2_conjugate(r, a)
    else:
        fp2_copy(r, a)
    fp2_mul(r, r, &FROBENIUS[power - 1][exponent])


cdef void fp12_frobenius(Fp12* r, const Fp12* a, int power) noexcept nogil:
    frobenius_term(&r.c0.c0, &a.c0.c0, power, 0)
    frobenius_term(&r.c1.c0, &a.c1.c0, power, 1)
    frobenius_term(&r.c0.c1, &a.c0.c1, power, 2)
    frobenius_term(&r.c1.c1, &a.c1.c1, power, 3)
    frobenius_term(&r.c0.c2, &a.c0.c2, power, 4)
    frobenius_term(&r.c1.c2, &a.c1.c2, power, 5)


# s + t y = (a + b y)^2, with y^2 = 9 + u.
cdef inline void fp4_sqr(Fp2* s, Fp2* t, const Fp2* a, const Fp2* b) noexcept nogil:
    cdef Fp2 aa, bb, ab
    fp2_sqr(&aa, a)
    fp2_sqr(&bb, b)
    fp2_add(&ab, a, b)
    fp2_sqr(&ab, &ab)
    fp2_sub(&ab, &ab, &aa)
    fp2_sub(t, &ab, &bb)
    fp2_mul_xi(&bb, &bb)
    fp2_add(s, &aa, &bb)


# r = 3 s - 2 a
cdef inline void cyclotomic_minus(Fp2* r, const Fp2* s, const Fp2* a) noexcept nogil:
    cdef Fp2 t
    fp2_sub(&t, s, a)
    fp2_double(&t, &t)
    fp2_add(r, &t, s)


# r = 3 s + 2 a
cdef inline void cyclotomic_plus(Fp2* r, const Fp2* s, const Fp2* a) noexcept nogil:
    cdef Fp2 t
    fp2_add(&t, s, a)
    fp2_double(&t, &t)
    fp2_add(r, &t, s)


# Granger and Scott, "Faster squaring in the cyclotomic subgroup of sixth degree extensions": three
# squarings in the quartic extension made by y = w^3.
cdef void fp12_cyclotomic_sqr(Fp12* r, const Fp12* a) noexcept nogil:
    cdef Fp2 s0, t0, s1, t1, s2, t2
    fp4_sqr(&s0, &t0, &a.c0.c0, &a.c1.c1)
    fp4_sqr(&s1, &t1, &a.c1.c0, &a.c0.c2)
    fp4_sqr(&s2, &t2, &a.c0.c1, &a.c1.c2)
    cyclotomic_minus(&r.c0.c0, &s0, &a.c0.c0)
    cyclotomic_plus(&r.c1.c1, &t0, &a.c1.c1)
    cyclotomic_minus(&r.c0.c1, &s1, &a.c0.c1)
    cyclotomic_plus(&r.c1.c2, &t1, &a.c1.c2)
    fp2_mul_xi(&t2, &t2)
    cyclotomic_plus(&r.c1.c0, &t2, &a.c1.c0)
    cyclotomic_minus(&r.c0.c2, &s2, &a.c0.c2)


# --- constants ---

cdef object multiply(object a, object b):
    return (a[0] * b[0] - a[1] * b[1]) % PRIME, (a[0] * b[1] + a[1] * b[0]) % PRIME


cdef object power_of(object base, object exponent):
    result = (1, 0)
    for bit in bin(exponent)[2:]:
        result = multiply(result, result)
        if bit == "1":
            result = multiply(result, base)
    return result


cdef void derive_constants() except *:
    # 9 + u to the power (p - 1) / 6, (p^2 - 1) / 6 and (p^3 - 1) / 6: raising to the power p
    # conjugates.
    cdef int power, i
    first = power_of((9, 1), (PRIME - 1) // 6)
    norm = multiply(first, (first[0], PRIME - first[1]))
    for power, root in enumerate((first, norm, multiply(norm, first)), 1):
        value = (1, 0)
        for i in range(6):
            fp2_from_ints(&FROBENIUS[power - 1][i], value)
            value = multiply(value, root)


derive_constants()
