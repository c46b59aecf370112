"""The optimal ate pairing of BN254: whether a product of pairings equals 1."""

from libc.stdint cimport int8_t
from libc.string cimport memset

from fastevm.core.precompiles.bn254.field cimport Fp, Fp2, fp2_scale, fp_inverse, fp_mul, fp_neg
from fastevm.core.precompiles.bn254.line_cache cimport CachedLines, hold_lines, release_lines
from fastevm.core.precompiles.bn254.miller_lines cimport (
    LOOP, LOOP_DIGITS, Line, UnitLine, Walker, ends_in_group, last_lines, next_lines, start,
)
from fastevm.core.precompiles.bn254.tower cimport (
    fp12_conjugate, fp12_cyclotomic_sqr, fp12_frobenius, fp12_inverse, fp12_is_one, fp12_mul,
    fp12_mul_line, fp12_mul_unit_line, fp12_one, fp12_sqr,
)

from fastevm.core.precompiles.bn254.curve import U, signed_digits


cdef enum:
    U_DIGITS = 63
    U_WINDOW = 4
    U_POWERS = 4              # odd powers 1, 3, 5, 7 for digits of U_WINDOW bits

cdef int8_t U_WINDOWS[U_DIGITS]  # the signed digits of u, least significant first


# A pair of points in the loop, whose lines are computed or cached.
cdef struct Pair:
    Walker walker
    CachedLines* known
    const UnitLine* next
    Fp m1                     # factor for the coefficients of cached lines
    Fp m3


cdef void begin(Pair* pair, const G1Affine* p, const G2Affine* q) noexcept nogil:
    pair.known = hold_lines(q)
    if pair.known == NULL:
        start(&pair.walker, p, q)
        return
    pair.next = pair.known.lines
    fp_inverse(&pair.m3, &p.y)
    fp_neg(&pair.m3, &pair.m3)
    fp_mul(&pair.m1, &pair.m3, &p.x)


cdef inline void take(Fp12* f, Pair* pair, int count) noexcept nogil:
    cdef Fp2 l1, l3
    cdef int _
    for _ in range(count):
        fp2_scale(&l1, &pair.next.l1, &pair.m1)
        fp2_scale(&l3, &pair.next.l3, &pair.m3)
        fp12_mul_unit_line(f, f, &l1, &l3)
        pair.next += 1


cdef void step(Fp12* f, Pair* pair, int position) noexcept nogil:
    cdef Line lines[2]
    cdef int count, i
    if pair.known != NULL:
        take(f, pair, 2 if LOOP[position] != 0 else 1)
        return
    count = next_lines(lines, &pair.walker, position)
    for i in range(count):
        fp12_mul_line(f, f, &lines[i].l0, &lines[i].l1, &lines[i].l3)


# Applies the final lines of the loop. Returns whether the point is in the group.
cdef bint end(Fp12* f, Pair* pair) noexcept nogil:
    cdef Line lines[2]
    cdef int i
    if pair.known != NULL:
        take(f, pair, 2)
        release_lines(pair.known)
        return True
    last_lines(lines, &pair.walker)
    for i in range(2):
        fp12_mul_line(f, f, &lines[i].l0, &lines[i].l1, &lines[i].l3)
    return ends_in_group(&pair.walker)


cdef bint miller_loop(Fp12* r, const G1Affine* ps, const G2Affine* qs, size_t count) noexcept nogil:
    cdef Pair pairs[MILLER_PAIRS]
    cdef size_t j
    cdef int position
    cdef bint good = True
    memset(pairs, 0, sizeof(pairs))
    for j in range(count):
        begin(&pairs[j], &ps[j], &qs[j])
    fp12_one(r)
    for position in range(LOOP_DIGITS - 2, -1, -1):
        fp12_sqr(r, r)
        for j in range(count):
            step(r, &pairs[j], position)
    for j in range(count):
        good &= end(r, &pairs[j])
    return good


# r = a^u, where a^(p^6 + 1) = 1, so that the conjugate is the inverse.
cdef void power_u(Fp12* r, const Fp12* a) noexcept nogil:
    cdef Fp12 powers[U_POWERS]
    cdef Fp12 t
    cdef int i = U_DIGITS - 1, digit
    powers[0] = a[0]
    fp12_cyclotomic_sqr(&t, a)
    for digit in range(1, U_POWERS):
        fp12_mul(&powers[digit], &powers[digit - 1], &t)
    t = powers[U_WINDOWS[i] >> 1]
    while i > 0:
        i -= 1
        fp12_cyclotomic_sqr(&t, &t)
        digit = U_WINDOWS[i]
        if digit > 0:
            fp12_mul(&t, &t, &powers[digit >> 1])
        elif digit < 0:
            fp12_conjugate(r, &powers[-digit >> 1])
            fp12_mul(&t, &t, r)
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
    # t = f^(6u^2); f accumulates the four digits in turn.
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


cdef void derive_constants() except *:
    cdef int i
    digits = signed_digits(U, U_WINDOW)
    if len(digits) != U_DIGITS or digits[U_DIGITS - 1] <= 0:
        raise ImportError("the number that BN254 is made from has other digits")
    for i in range(U_DIGITS):
        U_WINDOWS[i] = digits[i]


derive_constants()
