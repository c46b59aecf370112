"""Computes the lines of BN254's Miller loop for a point of the second group.

Points are in homogeneous coordinates, (X / Z, Y / Z) on the twist, where (x, y) stands for
the point (x w^2, y w^3) of the curve, so the line through a point with slope s, at (xp, yp), is
yp - s xp w + (s x - y) w^3. A factor in the quadratic extension does not matter, because the final
exponentiation maps it to 1.
"""

from fastevm.core.precompiles.bn254.curve cimport TWIST_B
from fastevm.core.precompiles.bn254.field cimport (
    FP_ONE, fp2_add, fp2_conjugate, fp2_double, fp2_eq, fp2_inverse, fp2_is_zero, fp2_mul, fp2_neg,
    fp2_one, fp2_scale, fp2_sqr, fp2_sub, fp_neg,
)
from fastevm.core.precompiles.bn254.tower cimport FROBENIUS

from fastevm.core.precompiles.bn254.curve import U, signed_digits


cdef int8_t LOOP[LOOP_DIGITS]
cdef Fp2 TWIST_B3              # three times the twist's b


cdef void start(Walker* t, const G1Affine* p, const G2Affine* q) noexcept nogil:
    t.xp = p.x
    fp_neg(&t.minus_yp, &p.y)
    start_raw(t, q)


cdef inline void start_raw(Walker* t, const G2Affine* q) noexcept nogil:
    t.xq = q.x
    t.yq = q.y
    fp2_neg(&t.minus_yq, &q.y)
    t.x = q.x
    t.y = q.y
    fp2_one(&t.z)


# T = 2T, and the tangent at T, scaled by -2 Y Z. With b = Y^2, e = 3 (twist's b) Z^2, h = 2 Y Z,
# the tangent is -h yp + 3 X^2 xp w + (e - b) w^3. Scaling the point by 4 avoids two halvings.
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


# T = T + (xq, yq), and the line through both, scaled by -l. With o = Y - yq Z and l = X - xq Z, the
# line is -l yp + o xp w + (l yq - o xq) w^3.
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


# x, y = psi^power(Q), for odd powers.
cdef inline void odd_frobenius(Fp2* x, Fp2* y, const Walker* t, int power) noexcept nogil:
    fp2_conjugate(x, &t.xq)
    fp2_mul(x, x, &FROBENIUS[power - 1][2])
    fp2_conjugate(y, &t.yq)
    fp2_mul(y, y, &FROBENIUS[power - 1][3])


cdef int next_lines(Line* lines, Walker* t, int position) noexcept nogil:
    double_step(&lines[0], t)
    if LOOP[position] == 0:
        return 1
    add_step(&lines[1], t, &t.xq, &t.yq if LOOP[position] > 0 else &t.minus_yq)
    return 2


cdef void last_lines(Line* lines, Walker* t) noexcept nogil:
    cdef Fp2 x, y
    odd_frobenius(&x, &y, t, 1)
    add_step(&lines[0], t, &x, &y)
    fp2_mul(&x, &t.xq, &FROBENIUS[1][2])
    fp2_mul(&y, &t.minus_yq, &FROBENIUS[1][3])
    add_step(&lines[1], t, &x, &y)


# Whether Q is in the group; called at the end of the loop. Only for points of the group is
# (6u + 2) Q + psi(Q) - psi^2(Q) equal to - psi^3(Q). If an addition met equal or opposite points,
# which never happens in the group, Z became zero and stayed zero.
cdef bint ends_in_group(const Walker* t) noexcept nogil:
    cdef Fp2 x, y
    if fp2_is_zero(&t.z):
        return False
    odd_frobenius(&x, &y, t, 3)
    fp2_mul(&x, &x, &t.z)
    fp2_mul(&y, &y, &t.z)
    fp2_neg(&y, &y)
    return fp2_eq(&x, &t.x) and fp2_eq(&y, &t.y)


# Divides all lines by their first coefficients, with a single inversion.
cdef void make_unit(UnitLine* units, const Line* lines) noexcept nogil:
    cdef Fp2 products[LINES]
    cdef Fp2 inverse, one
    cdef int i
    products[0] = lines[0].l0
    for i in range(1, LINES):
        fp2_mul(&products[i], &products[i - 1], &lines[i].l0)
    fp2_inverse(&inverse, &products[LINES - 1])
    for i in range(LINES - 1, -1, -1):
        one = inverse
        if i > 0:
            fp2_mul(&one, &inverse, &products[i - 1])
            fp2_mul(&inverse, &inverse, &lines[i].l0)
        fp2_mul(&units[i].l1, &lines[i].l1, &one)
        fp2_mul(&units[i].l3, &lines[i].l3, &one)


cdef bint all_lines(UnitLine* units, const G2Affine* q) noexcept nogil:
    cdef Line lines[LINES]
    cdef Walker t
    cdef int count = 0, position
    t.xp = FP_ONE
    t.minus_yp = FP_ONE
    start_raw(&t, q)
    for position in range(LOOP_DIGITS - 2, -1, -1):
        count += next_lines(&lines[count], &t, position)
    last_lines(&lines[count], &t)
    if not ends_in_group(&t):
        return False
    make_unit(units, lines)
    return True


cdef void derive_constants() except *:
    cdef int i
    digits = signed_digits(6 * U + 2)
    if len(digits) != LOOP_DIGITS or sum(map(bool, digits)) + LOOP_DIGITS != LINES:
        raise ImportError("the number that BN254 is made from has other digits")
    for i in range(LOOP_DIGITS):
        LOOP[i] = digits[i]
    fp2_double(&TWIST_B3, &TWIST_B)
    fp2_add(&TWIST_B3, &TWIST_B3, &TWIST_B)


derive_constants()
