# Barrett reduction: reduces modulo a 256-bit number that is used many times.
#
# Handbook of Applied Cryptography, 14.42.
# Contracts that do field arithmetic use one modulus for thousands of MULMODs. Each thread
# caches the last modulus. From its second use on, two truncated products replace the long
# division.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.intrinsics cimport copy32, lt256, sub256
from fastevm.core.primitives.limbs cimport divide_by_limbs, mul_add, mul_sub


cdef extern from "fastevm/core/primitives/intrinsics.h" nogil:
    ctypedef struct RepeatedModulus "fe_modulus":
        uint64_t n[4]
        uint64_t reciprocal[5]    # floor((2^512 - 1) / n)
        bint ready                # whether `reciprocal` has been computed
    # Thread-local; initially zero.
    RepeatedModulus* last_modulus "fe_last_modulus"()


# Returns whether `n` is the last modulus again, has four significant limbs and a known reciprocal.
cdef inline bint modulus_repeats(RepeatedModulus* last, const uint64_t* n) noexcept nogil:
    cdef uint64_t ones[8]
    cdef uint64_t rest[4]
    cdef int i
    if ((last.n[0] ^ n[0]) | (last.n[1] ^ n[1]) | (last.n[2] ^ n[2]) | (last.n[3] ^ n[3])) != 0:
        for i in range(4):
            last.n[i] = n[i]
        last.ready = False
        return False
    if not last.ready:
        for i in range(8):
            ones[i] = ~<uint64_t>0
        divide_by_limbs(last.reciprocal, rest, ones, 8, n, 4)
        last.ready = True
    return True


# Computes limbs 5 .. 9 of x[3..7] * m[0..4]: at most 1 too small, because columns 0 to 2 are
# omitted.
cdef inline void quotient_estimate(
    uint64_t* q, const uint64_t* x, const uint64_t* m
) noexcept nogil:
    cdef uint64_t p3, p4, p5, p6, p7, carry = 0
    p3 = mul_add(x[3], m[3], 0, &carry)
    p4 = mul_add(x[3], m[4], 0, &carry)
    p5 = carry
    carry = 0
    p3 = mul_add(x[4], m[2], p3, &carry)
    p4 = mul_add(x[4], m[3], p4, &carry)
    p5 = mul_add(x[4], m[4], p5, &carry)
    p6 = carry
    carry = 0
    p3 = mul_add(x[5], m[1], p3, &carry)
    p4 = mul_add(x[5], m[2], p4, &carry)
    p5 = mul_add(x[5], m[3], p5, &carry)
    p6 = mul_add(x[5], m[4], p6, &carry)
    p7 = carry
    quotient_rows(q, x, m, p3, p4, p5, p6, p7)


# The last two rows of the product above.
cdef inline void quotient_rows(
    uint64_t* q, const uint64_t* x, const uint64_t* m,
    uint64_t p3, uint64_t p4, uint64_t p5, uint64_t p6, uint64_t p7,
) noexcept nogil:
    cdef uint64_t p8, carry = 0
    mul_add(x[6], m[0], p3, &carry)
    p4 = mul_add(x[6], m[1], p4, &carry)
    p5 = mul_add(x[6], m[2], p5, &carry)
    p6 = mul_add(x[6], m[3], p6, &carry)
    p7 = mul_add(x[6], m[4], p7, &carry)
    p8 = carry
    carry = 0
    mul_add(x[7], m[0], p4, &carry)
    q[0] = mul_add(x[7], m[1], p5, &carry)
    q[1] = mul_add(x[7], m[2], p6, &carry)
    q[2] = mul_add(x[7], m[3], p7, &carry)
    q[3] = mul_add(x[7], m[4], p8, &carry)
    q[4] = carry


# Computes x - q * n modulo 2^320, in five limbs.
cdef inline void subtract_multiple(
    uint64_t* r, const uint64_t* x, const uint64_t* q, const uint64_t* n
) noexcept nogil:
    cdef uint64_t r1, r2, r3, r4, borrow = 0
    r[0] = mul_sub(x[0], q[0], n[0], &borrow)
    r1 = mul_sub(x[1], q[0], n[1], &borrow)
    r2 = mul_sub(x[2], q[0], n[2], &borrow)
    r3 = mul_sub(x[3], q[0], n[3], &borrow)
    r4 = x[4] - borrow - q[1] * n[3] - q[2] * n[2] - q[3] * n[1] - q[4] * n[0]
    borrow = 0
    r[1] = mul_sub(r1, q[1], n[0], &borrow)
    r2 = mul_sub(r2, q[1], n[1], &borrow)
    r3 = mul_sub(r3, q[1], n[2], &borrow)
    r4 -= borrow
    borrow = 0
    r[2] = mul_sub(r2, q[2], n[0], &borrow)
    r3 = mul_sub(r3, q[2], n[1], &borrow)
    r4 -= borrow
    borrow = 0
    r[3] = mul_sub(r3, q[3], n[0], &borrow)
    r[4] = r4 - borrow


# Computes the eight limbs of x modulo last.n. Call it only if `modulus_repeats` returned True.
cdef inline void reduce_repeated(
    uint64_t* r, const uint64_t* x, const RepeatedModulus* last
) noexcept nogil:
    cdef uint64_t q[5]
    cdef uint64_t rest[5]
    quotient_estimate(q, x, last.reciprocal)
    subtract_multiple(rest, x, q, last.n)
    # The quotient is at most four too small: two by the textbook bound, one for the omitted
    # columns, one because the reciprocal is of 2^512 - 1 instead of 2^512.
    while rest[4] != 0 or not lt256(rest, last.n):
        rest[4] -= <uint64_t>sub256(rest, rest, last.n)
    copy32(r, rest)
