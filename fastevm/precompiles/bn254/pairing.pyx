"""The optimal ate pairing of BN254: whether a product of pairings is one.

The points of the second group move through the Miller loop in homogeneous coordinates, as
(X / Z, Y / Z) on the twist. There (x, y) stands for the point (x w^2, y w^3) of the curve, so the
line through a point with slope s, at (xp, yp), is yp - s xp w + (s x - y) w^3. Lines count up to a
factor in the quadratic extension, which the final exponentiation takes to one.
"""

from libc.stdint cimport int8_t

from fastevm.precompiles.bn254.curve cimport TWIST_B
from fastevm.precompiles.bn254.field cimport (
    Fp, Fp2, fp2_add, fp2_conjugate, fp2_double, fp2_mul, fp2_neg, fp2_one, fp2_scale,
    fp2_sqr, fp2_sub, fp_neg,
)
from fastevm.precompiles.bn254.tower cimport (
    FROBENIUS, fp12_conjugate, fp12_cyclotomic_sqr, fp12_frobenius, fp12_inverse, fp12_is_one,
    fp12_mul, fp12_mul_line, fp12_one, fp12_sqr,
)

from fastevm.precompiles.bn254.curve import U, signed_binary


cdef enum:
    LOOP_DIGITS = 66
    U_DIGITS = 63

cdef int8_t LOOP[LOOP_DIGITS]  # the signed binary digits of 6u + 2, least significant first
cdef int8_t U_NAF[U_DIGITS]
cdef Fp2 TWIST_B3              # three times the twist's b


cdef struct Line:             # l0 + l1 w + l3 w^3
    Fp2 l0
    Fp2 l1
    Fp2 l3


cdef struct Walker:           # one pair on its way through the loop
    Fp xp
    Fp minus_yp
    Fp2 x
    Fp2 y
    Fp2 z
    Fp2 xq
    Fp2 yq
    Fp2 minus_yq


cdef void start(Walker* t, const G1Affine* p, const G2Affine* q) noexcept nogil:
    t.xp = p.x
    fp_neg(&t.minus_yp, &p.y)
    t.xq = q.x
    t.yq = q.y
    fp2_neg(&t.minus_yq, &q.y)
    t.x = q.x
    t.y = q.y
    fp2_one(&t.z)


# T = 2T, and the tangent at T times -2 Y Z: with b = Y^2, e = 3 (twist's b) Z^2, h = 2 Y Z it is
# -h yp + 3 X^2 xp w + (e - b) w^3. The point is scaled by 4, which spares two halvings.
cdef void double_step(Line* line, Walker* t) noexcept nogil:
    cdef Fp2 a, b, c, e, f, h
    fp2_mul(&a, &t.x, &t.y)
    fp2_double(&a, &a)
    fp2_sqr(&b, &t.y)
    fp2_sqr(&c, &t.z)
    fp2_mul(&e, &c, &TWIST_B3)
    fp2_add(&h, &t.y, &t.z)
    fp2_sqr(&h, &h)
    fp2_sub(&h, &h, &b)
    fp2_sub(&h, &h, &c)
    fp2_scale(&line.l0, &h, &t.minus_yp)
    fp2_sqr(&f, &t.x)
    fp2_double(&c, &f)
    fp2_add(&f, &f, &c)
    fp2_scale(&line.l1, &f, &t.xp)
    fp2_sub(&line.l3, &e, &b)
    # X = 2 X Y (b - 3e), Y = (b + 3e)^2 - 12 e^2, Z = 4 b h
    fp2_double(&f, &e)
    fp2_add(&f, &f, &e)
    fp2_sub(&c, &b, &f)
    fp2_mul(&t.x, &a, &c)
    fp2_add(&c, &b, &f)
    fp2_sqr(&c, &c)
    fp2_mul(&f, &f, &e)
    fp2_double(&f, &f)
    fp2_double(&f, &f)
    fp2_sub(&t.y, &c, &f)
    fp2_double(&h, &h)
    fp2_double(&h, &h)
    fp2_mul(&t.z, &b, &h)


# T = T + (xq, yq), and the line through both times -l: with o = Y - yq Z and l = X - xq Z it is
# -l yp + o xp w + (l yq - o xq) w^3.
cdef void add_step(Line* line, Walker* t, const Fp2* xq, const Fp2* yq) noexcept nogil:
    cdef Fp2 o, l, ll, e, f, g
    fp2_mul(&o, yq, &t.z)
    fp2_sub(&o, &t.y, &o)
    fp2_mul(&l, xq, &t.z)
    fp2_sub(&l, &t.x, &l)
    fp2_scale(&line.l0, &l, &t.minus_yp)
    fp2_scale(&line.l1, &o, &t.xp)
    fp2_mul(&line.l3, &l, yq)
    fp2_mul(&f, &o, xq)
    fp2_sub(&line.l3, &line.l3, &f)
    # With e = l^3, g = X l^2 and h = e + Z o^2 - 2g: X = l h, Y = o (g - h) - e Y, Z = Z e
    fp2_sqr(&ll, &l)
    fp2_mul(&e, &ll, &l)
    fp2_mul(&g, &t.x, &ll)
    fp2_sqr(&f, &o)
    fp2_mul(&f, &f, &t.z)
    fp2_add(&f, &f, &e)
    fp2_sub(&f, &f, &g)
    fp2_sub(&f, &f, &g)
    fp2_mul(&t.x, &l, &f)
    fp2_sub(&g, &g, &f)
    fp2_mul(&g, &g, &o)
    fp2_mul(&f, &e, &t.y)
    fp2_sub(&t.y, &g, &f)
    fp2_mul(&t.z, &t.z, &e)


cdef void step(Fp12* f, Walker* t, int digit) noexcept nogil:
    cdef Line line
    double_step(&line, t)
    fp12_mul_line(f, f, &line.l0, &line.l1, &line.l3)
    if digit != 0:
        add_step(&line, t, &t.xq, &t.yq if digit > 0 else &t.minus_yq)
        fp12_mul_line(f, f, &line.l0, &line.l1, &line.l3)


# The two lines that end the optimal ate loop: T + psi(Q), and then - psi^2(Q).
cdef void last_steps(Fp12* f, Walker* t) noexcept nogil:
    cdef Line line
    cdef Fp2 x, y
    fp2_conjugate(&x, &t.xq)
    fp2_mul(&x, &x, &FROBENIUS[0][2])
    fp2_conjugate(&y, &t.yq)
    fp2_mul(&y, &y, &FROBENIUS[0][3])
    add_step(&line, t, &x, &y)
    fp12_mul_line(f, f, &line.l0, &line.l1, &line.l3)
    fp2_mul(&x, &t.xq, &FROBENIUS[1][2])
    fp2_mul(&y, &t.minus_yq, &FROBENIUS[1][3])
    add_step(&line, t, &x, &y)
    fp12_mul_line(f, f, &line.l0, &line.l1, &line.l3)


cdef void miller_loop(Fp12* r, const G1Affine* ps, const G2Affine* qs, size_t count) noexcept nogil:
    cdef Walker walkers[MILLER_PAIRS]
    cdef size_t j
    cdef int i = LOOP_DIGITS - 1
    for j in range(count):
        start(&walkers[j], &ps[j], &qs[j])
    fp12_one(r)
    while i > 0:
        i -= 1
        fp12_sqr(r, r)
        for j in range(count):
            step(r, &walkers[j], LOOP[i])
    for j in range(count):
        last_steps(r, &walkers[j])


# r = a^u, where a^(p^6 + 1) = 1, so that the conjugate is the inverse.
cdef void power_u(Fp12* r, const Fp12* a) noexcept nogil:
    cdef Fp12 t, inverse
    cdef int i = U_DIGITS - 1
    fp12_conjugate(&inverse, a)
    t = a[0]
    while i > 0:
        i -= 1
        fp12_cyclotomic_sqr(&t, &t)
        if U_NAF[i] > 0:
            fp12_mul(&t, &t, a)
        elif U_NAF[i] < 0:
            fp12_mul(&t, &t, &inverse)
    r[0] = t


# f^((p^6 - 1)(p^2 + 1))
cdef void easy_part(Fp12* f) noexcept nogil:
    cdef Fp12 t
    fp12_inverse(&t, f)
    fp12_conjugate(f, f)
    fp12_mul(f, f, &t)
    fp12_frobenius(&t, f, 2)
    fp12_mul(f, f, &t)


# f^(2u (6u^2 + 3u + 1) (p^4 - p^2 + 1) / r): a multiple of the hard part that has, in powers of p,
# the digits a + 6u^2 + 1, b, a, b - 1 with a = 12u^3 + 6u^2 + 6u and b = a - 2u. Fuentes-Castaneda,
# Knapp and Rodriguez-Henriquez, "Faster hashing to G2".
cdef void hard_part(Fp12* f) noexcept nogil:
    cdef Fp12 u2, u6, a, b, t
    power_u(&u2, f)
    fp12_cyclotomic_sqr(&u2, &u2)
    fp12_cyclotomic_sqr(&u6, &u2)
    fp12_mul(&u6, &u6, &u2)
    power_u(&t, &u6)
    fp12_cyclotomic_sqr(&a, &t)
    power_u(&a, &a)
    fp12_mul(&a, &a, &t)
    fp12_mul(&a, &a, &u6)
    fp12_conjugate(&u2, &u2)
    fp12_mul(&b, &a, &u2)
    # t = f^(6u^2); f takes the four digits one after the other.
    fp12_conjugate(&u6, f)
    fp12_mul(f, f, &t)
    fp12_mul(f, f, &a)
    fp12_frobenius(&t, &b, 1)
    fp12_mul(f, f, &t)
    fp12_frobenius(&t, &a, 2)
    fp12_mul(f, f, &t)
    fp12_mul(&b, &b, &u6)
    fp12_frobenius(&t, &b, 3)
    fp12_mul(f, f, &t)


cdef bint final_check(Fp12* f) noexcept nogil:
    easy_part(f)
    hard_part(f)
    return fp12_is_one(f)


cdef void load_digits(int8_t* digits, int count, object n) except *:
    cdef int i
    found = signed_binary(n)
    if len(found) != count:
        raise ImportError("the number that BN254 is made from has another length")
    for i in range(count):
        digits[i] = found[i]


load_digits(LOOP, LOOP_DIGITS, 6 * U + 2)
load_digits(U_NAF, U_DIGITS, U)
fp2_double(&TWIST_B3, &TWIST_B)
fp2_add(&TWIST_B3, &TWIST_B3, &TWIST_B)
