"""The two groups of BN254: points as bytes, sums, multiples, and the subgroup check of the second.

Internally a point is three consecutive elements (X, Y, Z), which mean (X / Z^2, Y / Z^3), or
infinity if Z is zero. Both curves are y^2 = x^3 + b, so the same code works over both fields.
"""

from libc.stdint cimport int8_t, uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.bn254.field cimport (
    FP_ONE, fp2_add, fp2_conjugate, fp2_copy, fp2_eq, fp2_from_ints, fp2_half, fp2_inverse, fp2_mul,
    fp2_neg, fp2_one, fp2_sqr, fp2_sub, fp2_zero, fp_add, fp_copy, fp_dot2, fp_double,
    fp_eq, fp_from_int, fp_half, fp_inverse, fp_load, fp_mul, fp_neg, fp_sqr, fp_store, fp_sub,
    fp_zero,
)
from fastevm.core.precompiles.bn254.tower cimport FROBENIUS
from fastevm.core.primitives.intrinsics cimport ctz64
from fastevm.core.primitives.word cimport (
    Word, shift_right, word_add, word_from_int, word_from_limbs, word_is_zero, word_load, word_lt,
    word_mul, word_set, word_sub,
)


cdef extern from "fastevm/core/precompiles/bn254/field.h" nogil:
    void multiply_wide "fp_wide_portable"(uint64_t* t, const uint64_t* a, const uint64_t* b)


cdef enum:
    WINDOW = 5                # bits of a scalar's digit, which is odd and below 16, or zero
    MULTIPLES = 8             # number of odd multiples 1, 3, .. 15 of a point, one for each digit
    HALF_DIGITS = 132         # digits of half a scalar, which is below 2^129
    U_DIGITS = 63

ctypedef fused Element:
    Fp
    Fp2

U = 4965661367192848881       # the BN parameter of the curve
GROUP_ORDER = 36 * U**4 + 36 * U**3 + 18 * U**2 + 6 * U + 1

# (x, y) -> (CUBE_ROOT x, y) multiplies points of the first group by EIGENVALUE. The rows of
# LATTICE are numbers (a, b) for which a + b EIGENVALUE is a multiple of the order.
CUBE_ROOT = 18 * U**3 + 18 * U**2 + 9 * U + 1
EIGENVALUE = 36 * U**3 + 18 * U**2 + 6 * U + 1
LATTICE = ((2 * U + 1, -6 * U**2 - 2 * U), (6 * U**2 + 4 * U + 1, 2 * U + 1))

cdef Fp CURVE_B, CUBE_ROOT_OF_ONE
cdef Word ORDER
cdef Word SHORT, LONG_1, LONG_2        # 2u + 1, 6u^2 + 2u, 6u^2 + 4u + 1: the entries of LATTICE
cdef Word SHORT_SHARE, LONG_SHARE      # SHORT and LONG_1 divided by the order, times 2^256
cdef int8_t U_NAF[U_DIGITS]   # the signed binary digits of U


# --- either field ---

cdef inline void add(Element* r, const Element* a, const Element* b) noexcept nogil:
    if Element is Fp:
        fp_add(r, a, b)
    else:
        fp2_add(r, a, b)


cdef inline void sub(Element* r, const Element* a, const Element* b) noexcept nogil:
    if Element is Fp:
        fp_sub(r, a, b)
    else:
        fp2_sub(r, a, b)


cdef inline void half(Element* r, const Element* a) noexcept nogil:
    if Element is Fp:
        fp_half(r, a)
    else:
        fp2_half(r, a)


cdef inline void mul(Element* r, const Element* a, const Element* b) noexcept nogil:
    if Element is Fp:
        fp_mul(r, a, b)
    else:
        fp2_mul(r, a, b)


cdef inline void sqr(Element* r, const Element* a) noexcept nogil:
    if Element is Fp:
        fp_sqr(r, a)
    else:
        fp2_sqr(r, a)


# r = ab - cd
cdef inline void determinant(
    Element* r, const Element* a, const Element* b, const Element* c, const Element* d,
) noexcept nogil:
    cdef Element t
    if Element is Fp:
        fp_neg(&t, c)
        fp_dot2(r, a, b, &t, d)
    else:
        fp2_mul(&t, c, d)
        fp2_mul(r, a, b)
        fp2_sub(r, r, &t)


cdef inline void copy(Element* r, const Element* a) noexcept nogil:
    if Element is Fp:
        fp_copy(r, a)
    else:
        fp2_copy(r, a)


cdef inline bint is_zero(const Element* a) noexcept nogil:
    if Element is Fp:
        return fp_is_zero(a)
    else:
        return fp2_is_zero(a)


cdef inline void clear(Element* r) noexcept nogil:
    if Element is Fp:
        fp_zero(r)
    else:
        fp2_zero(r)


# --- points (X, Y, Z); all formulas are complete, and results may alias operands ---

cdef inline void point_copy(Element* r, const Element* p) noexcept nogil:
    copy(&r[0], &p[0])
    copy(&r[1], &p[1])
    copy(&r[2], &p[2])


# With l = 3 X^2 / 2 and v = X Y^2: X = l^2 - 2v, Y = l (v - X) - Y^4, Z = Y Z.
cdef void point_double(Element* r, const Element* p) noexcept nogil:
    cdef Element l, v, yy
    sqr(&yy, &p[1])
    mul(&r[2], &p[1], &p[2])
    mul(&v, &p[0], &yy)
    sqr(&l, &p[0])
    half(&r[1], &l)
    add(&l, &l, &r[1])
    sqr(&r[0], &l)
    sub(&r[0], &r[0], &v)
    sub(&r[0], &r[0], &v)
    sub(&v, &v, &r[0])
    determinant(&r[1], &l, &v, &yy, &yy)


# Adds two points, given x1, y1 and x2, y2 over a common denominator, and z, the product of both Z.
cdef inline void point_join(
    Element* r, const Element* p, const Element* x1, const Element* y1, const Element* x2,
    const Element* y2, const Element* z,
) noexcept nogil:
    cdef Element h, s, hh, hhh, v
    sub(&h, x2, x1)
    sub(&s, y2, y1)
    if is_zero(&h):
        if is_zero(&s):
            point_double(r, p)
        else:
            clear(&r[2])
        return
    sqr(&hh, &h)
    mul(&hhh, &hh, &h)
    mul(&v, x1, &hh)
    mul(&r[2], z, &h)
    sqr(&h, &s)
    sub(&h, &h, &hhh)
    sub(&h, &h, &v)
    sub(&r[0], &h, &v)
    sub(&v, &v, &r[0])
    determinant(&r[1], &s, &v, &hhh, y1)


cdef void point_add(Element* r, const Element* p, const Element* q) noexcept nogil:
    cdef Element zz1, zz2, x1, y1, x2, y2, z
    if is_zero(&p[2]):
        point_copy(r, q)
        return
    if is_zero(&q[2]):
        point_copy(r, p)
        return
    sqr(&zz1, &p[2])
    sqr(&zz2, &q[2])
    mul(&x1, &p[0], &zz2)
    mul(&x2, &q[0], &zz1)
    mul(&y1, &p[1], &zz2)
    mul(&y1, &y1, &q[2])
    mul(&y2, &q[1], &zz1)
    mul(&y2, &y2, &p[2])
    mul(&z, &p[2], &q[2])
    point_join(r, p, &x1, &y1, &x2, &y2, &z)


# Adds the affine point (x, y). Neither point is the affine form of infinity. `one` is the field's
# 1.
cdef void point_add_affine(
    Element* r, const Element* p, const Element* x, const Element* y, const Element* one,
) noexcept nogil:
    cdef Element zz, x1, y1, x2, y2, z
    if is_zero(&p[2]):
        copy(&r[0], x)
        copy(&r[1], y)
        copy(&r[2], one)
        return
    sqr(&zz, &p[2])
    mul(&x2, x, &zz)
    mul(&y2, y, &zz)
    mul(&y2, &y2, &p[2])
    copy(&x1, &p[0])
    copy(&y1, &p[1])
    copy(&z, &p[2])
    point_join(r, p, &x1, &y1, &x2, &y2, &z)


# --- the first group ---

cdef bint g1_load(G1Affine* r, const uint8_t* p) noexcept nogil:
    cdef Fp left, right
    if not fp_load(&r.x, p) or not fp_load(&r.y, p + 32):
        return False
    if g1_is_infinity(r):
        return True
    fp_sqr(&left, &r.y)
    fp_sqr(&right, &r.x)
    fp_mul(&right, &right, &r.x)
    fp_add(&right, &right, &CURVE_B)
    return fp_eq(&left, &right)


cdef void g1_store(uint8_t* p, const G1Affine* a) noexcept nogil:
    fp_store(p, &a.x)
    fp_store(p + 32, &a.y)


# Adds affine points. The result is affine too, so a sum or a double takes one division.
cdef void g1_add(G1Affine* r, const G1Affine* a, const G1Affine* b) noexcept nogil:
    cdef Fp slope, divisor, x
    if g1_is_infinity(a):
        r[0] = b[0]
        return
    if g1_is_infinity(b):
        r[0] = a[0]
        return
    fp_sub(&divisor, &b.x, &a.x)
    fp_sub(&slope, &b.y, &a.y)
    if fp_is_zero(&divisor):
        if not fp_is_zero(&slope):
            fp_zero(&r.x)
            fp_zero(&r.y)
            return
        fp_double(&divisor, &a.y)
        fp_sqr(&x, &a.x)
        fp_double(&slope, &x)
        fp_add(&slope, &slope, &x)
    fp_inverse(&divisor, &divisor)
    fp_mul(&slope, &slope, &divisor)
    fp_sqr(&x, &slope)
    fp_sub(&x, &x, &a.x)
    fp_sub(&x, &x, &b.x)
    fp_sub(&divisor, &a.x, &x)
    fp_mul(&slope, &slope, &divisor)
    fp_sub(&r.y, &slope, &a.y)
    fp_copy(&r.x, &x)


cdef void g1_to_affine(G1Affine* r, const Fp* p) noexcept nogil:
    cdef Fp inverse, square
    fp_inverse(&inverse, &p[2])
    fp_sqr(&square, &inverse)
    fp_mul(&r.x, &p[0], &square)
    fp_mul(&square, &square, &inverse)
    fp_mul(&r.y, &p[1], &square)


# Reads a 32-byte number and reduces it modulo the order of the group.
cdef inline void load_scalar(Word* r, const uint8_t* p) noexcept nogil:
    word_load(r, p)
    while not word_lt(r, &ORDER):
        word_sub(r, r, &ORDER)


cdef inline void high_product(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef uint64_t wide[8]
    multiply_wide(wide, a.d, b.d)
    word_from_limbs(r, wide[4], wide[5], wide[6], wide[7])


# k = k1 + k2 EIGENVALUE modulo the order, for k below it: Gallant, Lambert and Vanstone, "Faster
# point multiplication on elliptic curves with efficient endomorphisms". k1 is the remainder of (k,
# 0) after subtracting whole rows of LATTICE. Each row may be subtracted once too few, so k1 is
# never negative. Returns whether k2 is negative and stores its absolute value.
cdef bint split(Word* k1, Word* k2, const Word* k) noexcept nogil:
    cdef Word c1, c2, t
    high_product(&c1, k, &SHORT_SHARE)
    high_product(&c2, k, &LONG_SHARE)
    word_mul(&t, &c1, &SHORT)
    word_sub(k1, k, &t)
    word_mul(&t, &c2, &LONG_2)
    word_sub(k1, k1, &t)
    word_mul(k2, &c1, &LONG_1)
    word_mul(&t, &c2, &SHORT)
    if word_lt(k2, &t):
        word_sub(k2, &t, k2)
        return True
    word_sub(k2, k2, &t)
    return False


# Recodes a number below 2^129, times sign, to digits that are zero or odd, least significant first.
# Of WINDOW consecutive digits at most one is nonzero. Consumes the number.
cdef void recode(int8_t* digits, Word* k, int sign) noexcept nogil:
    cdef int position = 0, digit, zeros
    cdef Word part
    memset(digits, 0, HALF_DIGITS)
    while not word_is_zero(k):
        zeros = ctz64(k.d[0]) if k.d[0] != 0 else 63
        shift_right(k, <uint64_t>zeros, k, 0)
        position += zeros
        if k.d[0] & 1 == 0:
            continue
        digit = <int>(k.d[0] & ((1 << WINDOW) - 1))
        if digit < 1 << (WINDOW - 1):
            k.d[0] -= <uint64_t>digit
        else:
            digit -= 1 << WINDOW
            word_set(&part, <uint64_t>-digit)
            word_add(k, k, &part)
        digits[position] = <int8_t>(sign * digit)


# The odd multiples of a point, and their images under the endomorphism: affine points on an
# isomorphic curve, on which (x, y) stands for (x / z^2, y / z^3).
cdef struct Multiples:
    Fp x[MULTIPLES]
    Fp y[MULTIPLES]
    Fp image_x[MULTIPLES]
    Fp z


# Computes r = p + q and rescales q, so that both have the same new z. `growth` receives the factor
# from the old z to the new one. Meloni, "New point addition formulae for ECC applications". The
# points are neither equal nor opposite.
cdef inline void add_same_z(
    Fp* rx, Fp* ry, Fp* qx, Fp* qy, Fp* growth, const Fp* px, const Fp* py,
) noexcept nogil:
    cdef Fp square, slope, px2, a
    fp_sub(growth, qx, px)
    fp_sqr(&square, growth)
    fp_sub(&slope, qy, py)
    fp_mul(&px2, px, &square)
    fp_mul(qx, qx, &square)
    fp_sub(&a, qx, &px2)
    fp_mul(qy, qy, &a)
    fp_sqr(rx, &slope)
    fp_sub(rx, rx, &px2)
    fp_sub(rx, rx, qx)
    fp_sub(&a, qx, rx)
    fp_mul(ry, &slope, &a)
    fp_sub(ry, ry, qy)


# dx, dy = 2p, and the table's first point = p, both over z = 2y.
cdef inline void double_same_z(Multiples* table, Fp* dx, Fp* dy, const G1Affine* p) noexcept nogil:
    cdef Fp yy, slope, t
    fp_double(&table.z, &p.y)
    fp_sqr(&yy, &table.z)                        # 4 y^2
    fp_mul(&table.x[0], &p.x, &yy)
    fp_sqr(&slope, &p.x)
    fp_double(dx, &slope)
    fp_add(&slope, &slope, dx)
    fp_sqr(dx, &slope)
    fp_sub(dx, dx, &table.x[0])
    fp_sub(dx, dx, &table.x[0])
    fp_mul(&table.y[0], &table.z, &p.y)          # 2 y^2
    fp_mul(&table.y[0], &table.y[0], &yy)        # 8 y^4
    fp_sub(&t, &table.x[0], dx)
    fp_mul(dy, &slope, &t)
    fp_sub(dy, dy, &table.y[0])


# Computes the odd multiples of a point, which is not infinity. Its prime order is larger than every
# multiple used here, so no sum meets equal or opposite points.
cdef void tabulate(Multiples* table, const G1Affine* p) noexcept nogil:
    cdef Fp growth[MULTIPLES]
    cdef Fp dx, dy, scale, t
    cdef int i
    double_same_z(table, &dx, &dy, p)
    for i in range(1, MULTIPLES):
        add_same_z(
            &table.x[i], &table.y[i], &dx, &dy, &growth[i], &table.x[i - 1], &table.y[i - 1],
        )
    # Rescale every point to the last z: go backwards and multiply by the accumulated factors.
    fp_copy(&scale, &growth[MULTIPLES - 1])
    for i in range(MULTIPLES - 2, -1, -1):
        fp_sqr(&t, &scale)
        fp_mul(&table.x[i], &table.x[i], &t)
        fp_mul(&t, &t, &scale)
        fp_mul(&table.y[i], &table.y[i], &t)
        if i > 0:
            fp_mul(&scale, &scale, &growth[i])
    fp_mul(&table.z, &table.z, &scale)
    for i in range(MULTIPLES):
        fp_mul(&table.image_x[i], &table.x[i], &CUBE_ROOT_OF_ONE)


cdef inline void add_multiple(Fp* sum, const Fp* x, const Fp* y, int digit) noexcept nogil:
    cdef Fp negative
    if digit > 0:
        point_add_affine(sum, sum, &x[digit >> 1], &y[digit >> 1], &FP_ONE)
    elif digit < 0:
        fp_neg(&negative, &y[-digit >> 1])
        point_add_affine(sum, sum, &x[-digit >> 1], &negative, &FP_ONE)


cdef void g1_mul(G1Affine* r, const G1Affine* a, const uint8_t* scalar) noexcept nogil:
    cdef int8_t digits[2][HALF_DIGITS]
    cdef Multiples table
    cdef Fp sum[3]
    cdef Word k, k1, k2
    cdef int i
    if g1_is_infinity(a):
        r[0] = a[0]
        return
    load_scalar(&k, scalar)
    recode(digits[1], &k2, -1 if split(&k1, &k2, &k) else 1)
    recode(digits[0], &k1, 1)
    tabulate(&table, a)
    clear(&sum[2])
    for i in range(HALF_DIGITS - 1, -1, -1):
        if not fp_is_zero(&sum[2]):
            point_double(sum, sum)
        add_multiple(sum, table.x, table.y, digits[0][i])
        add_multiple(sum, table.image_x, table.y, digits[1][i])
    fp_mul(&sum[2], &sum[2], &table.z)
    g1_to_affine(r, sum)


# --- the second group ---

cdef bint g2_load(G2Affine* r, const uint8_t* p) noexcept nogil:
    cdef Fp2 left, right
    if not fp_load(&r.x.im, p) or not fp_load(&r.x.re, p + 32):
        return False
    if not fp_load(&r.y.im, p + 64) or not fp_load(&r.y.re, p + 96):
        return False
    if g2_is_infinity(r):
        return True
    fp2_sqr(&left, &r.y)
    fp2_sqr(&right, &r.x)
    fp2_mul(&right, &right, &r.x)
    fp2_add(&right, &right, &TWIST_B)
    return fp2_eq(&left, &right)


# r = u times an affine point that is not infinity.
cdef void g2_mul_u(Fp2* r, const G2Affine* p) noexcept nogil:
    cdef Fp2 one, negative
    cdef int i = U_DIGITS - 1
    fp2_one(&one)
    fp2_neg(&negative, &p.y)
    fp2_copy(&r[0], &p.x)
    fp2_copy(&r[1], &p.y)
    fp2_copy(&r[2], &one)
    while i > 0:
        i -= 1
        point_double(r, r)
        if U_NAF[i] > 0:
            point_add_affine(r, r, &p.x, &p.y, &one)
        elif U_NAF[i] < 0:
            point_add_affine(r, r, &p.x, &negative, &one)


# r = psi^power(p): the map (x, y) -> (x^p, y^p) of the curve over the big field, transferred to the
# twist.
cdef void g2_frobenius(Fp2* r, const Fp2* p, int power) noexcept nogil:
    if power & 1:
        fp2_conjugate(&r[0], &p[0])
        fp2_conjugate(&r[1], &p[1])
        fp2_conjugate(&r[2], &p[2])
    else:
        point_copy(r, p)
    fp2_mul(&r[0], &r[0], &FROBENIUS[power - 1][2])
    fp2_mul(&r[1], &r[1], &FROBENIUS[power - 1][3])


# A point q of the twist is in the group if and only if (u + 1) q + psi(u q) + psi^2(u q) = psi^3(2u
# q): Dai, Lin, Zhao and Zhou, "Fast subgroup membership testings for G1, G2 and GT on
# pairing-friendly curves". The norm of u + 1 + u psi + u psi^2 - 2u psi^3 shares no factor with the
# cofactor.
cdef bint g2_in_group(const G2Affine* p) noexcept nogil:
    cdef Fp2 multiple[3]
    cdef Fp2 sum[3]
    cdef Fp2 image[3]
    cdef Fp2 one
    if g2_is_infinity(p):
        return True
    fp2_one(&one)
    g2_mul_u(multiple, p)
    point_add_affine(sum, multiple, &p.x, &p.y, &one)
    g2_frobenius(image, multiple, 1)
    point_add(sum, sum, image)
    g2_frobenius(image, multiple, 2)
    point_add(sum, sum, image)
    point_double(multiple, multiple)
    g2_frobenius(image, multiple, 3)
    fp2_neg(&image[1], &image[1])
    point_add(sum, sum, image)
    return fp2_is_zero(&sum[2])


# --- constants ---

cdef void derive_constants() except *:
    cdef Fp2 xi
    cdef int i
    word_from_int(&ORDER, GROUP_ORDER)
    word_from_int(&SHORT, LATTICE[0][0])
    word_from_int(&LONG_1, -LATTICE[0][1])
    word_from_int(&LONG_2, LATTICE[1][0])
    word_from_int(&SHORT_SHARE, (LATTICE[1][1] << 256) // GROUP_ORDER)
    word_from_int(&LONG_SHARE, (-LATTICE[0][1] << 256) // GROUP_ORDER)
    fp_from_int(&CUBE_ROOT_OF_ONE, CUBE_ROOT)
    fp_from_int(&CURVE_B, 3)
    fp2_from_ints(&xi, (9, 1))
    fp2_from_ints(&TWIST_B, (3, 0))
    fp2_inverse(&xi, &xi)
    fp2_mul(&TWIST_B, &TWIST_B, &xi)
    digits = signed_digits(U)
    if len(digits) != U_DIGITS:
        raise ImportError("the number that BN254 is made from has another length")
    for i in range(U_DIGITS):
        U_NAF[i] = digits[i]


def signed_digits(n: int, width: int = 2) -> list[int]:
    """Returns the signed digits of ``n``, each zero or odd and below 2^(width - 1).

    Of ``width`` consecutive digits at most one is nonzero. Least significant first.
    """
    digits = []
    while n:
        digit = 0
        if n % 2:
            digit = n % 2**width
            if digit >= 2 ** (width - 1):
                digit -= 2**width
        digits.append(digit)
        n = (n - digit) // 2
    return digits


derive_constants()
