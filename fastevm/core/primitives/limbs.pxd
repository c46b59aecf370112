# Long division of arrays of limbs, the least significant first.
#
# Knuth, The Art of Computer Programming, 4.3.1, algorithm D, with each row written out: gcc does
# not unroll at -O2.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.intrinsics cimport clz64, div128by64, likely, u128


# --- double limbs ---

# a * b + addend + carry, which always fits in two limbs; returns the low limb and stores the high
# limb in `carry`.
cdef inline uint64_t mul_add(
    uint64_t a, uint64_t b, uint64_t addend, uint64_t* carry
) noexcept nogil:
    cdef u128 t = <u128>a * <u128>b + <u128>addend + <u128>carry[0]
    carry[0] = <uint64_t>(t >> 64)
    return <uint64_t>t


# Returns u - q * v - borrow for one limb, and stores the new borrow.
cdef inline uint64_t mul_sub(uint64_t u, uint64_t q, uint64_t v, uint64_t* borrow) noexcept nogil:
    cdef u128 t = <u128>q * <u128>v + <u128>borrow[0]
    cdef uint64_t low = <uint64_t>t
    borrow[0] = <uint64_t>(t >> 64) + (u < low)
    return u - low


# Returns u + v + carry for one limb, and stores the new carry.
cdef inline uint64_t add_limb(uint64_t u, uint64_t v, uint64_t* carry) noexcept nogil:
    cdef u128 t = <u128>u + <u128>v + <u128>carry[0]
    carry[0] = <uint64_t>(t >> 64)
    return <uint64_t>t


# Returns the low limb of (high, low) >> s, for s in 0..63.
cdef inline uint64_t join_right(uint64_t high, uint64_t low, int s) noexcept nogil:
    return (low >> s) | ((high << 1) << (63 - s))


# Returns the high limb of (high, low) << s, for s in 0..63.
cdef inline uint64_t join_left(uint64_t high, uint64_t low, int s) noexcept nogil:
    return (high << s) | ((low >> 1) >> (63 - s))


# --- one digit: u has one limb more than v, u's top limbs are below v, and v's top bit is set ---

# Returns the quotient digit, estimated from the top three limbs of u and the top two of v: exact,
# or 1 too large.
cdef inline uint64_t estimate(
    uint64_t u2, uint64_t u1, uint64_t u0, uint64_t v1, uint64_t v0
) noexcept nogil:
    cdef uint64_t q, rest = 0
    cdef u128 product
    if u2 >= v1:
        q = ~<uint64_t>0
        rest = u1 + v1
        if rest < v1:
            return q
    else:
        q = div128by64(u2, u1, v1, &rest)
    product = <u128>q * <u128>v0
    while product > ((<u128>rest << 64) | <u128>u0):
        q -= 1
        product -= <u128>v0
        rest += v1
        if rest < v1:
            break
    return q


cdef inline uint64_t digit2(uint64_t* u, const uint64_t* v) noexcept nogil:
    cdef uint64_t q = estimate(u[2], u[1], u[0], v[1], v[0])
    cdef uint64_t borrow = 0
    u[0] = mul_sub(u[0], q, v[0], &borrow)
    u[1] = mul_sub(u[1], q, v[1], &borrow)
    return q


cdef inline uint64_t digit3(uint64_t* u, const uint64_t* v) noexcept nogil:
    cdef uint64_t q = estimate(u[3], u[2], u[1], v[2], v[1])
    cdef uint64_t borrow = 0, carry = 0
    u[0] = mul_sub(u[0], q, v[0], &borrow)
    u[1] = mul_sub(u[1], q, v[1], &borrow)
    u[2] = mul_sub(u[2], q, v[2], &borrow)
    if likely(u[3] >= borrow):
        return q
    u[0] = add_limb(u[0], v[0], &carry)
    u[1] = add_limb(u[1], v[1], &carry)
    u[2] = add_limb(u[2], v[2], &carry)
    return q - 1


cdef inline uint64_t digit4(uint64_t* u, const uint64_t* v) noexcept nogil:
    cdef uint64_t q = estimate(u[4], u[3], u[2], v[3], v[2])
    cdef uint64_t borrow = 0, carry = 0
    u[0] = mul_sub(u[0], q, v[0], &borrow)
    u[1] = mul_sub(u[1], q, v[1], &borrow)
    u[2] = mul_sub(u[2], q, v[2], &borrow)
    u[3] = mul_sub(u[3], q, v[3], &borrow)
    if likely(u[4] >= borrow):
        return q
    u[0] = add_limb(u[0], v[0], &carry)
    u[1] = add_limb(u[1], v[1], &carry)
    u[2] = add_limb(u[2], v[2], &carry)
    u[3] = add_limb(u[3], v[3], &carry)
    return q - 1


# --- division of `size` limbs ---

# Divides by one limb; returns the remainder.
cdef inline uint64_t divide_by_limb(
    uint64_t* q, const uint64_t* u, int size, uint64_t v
) noexcept nogil:
    cdef uint64_t rest = 0
    cdef int i = size - 1
    while i >= 0:
        q[i] = div128by64(rest, u[i], v, &rest)
        i -= 1
    return rest


# Shifts four limbs right.
cdef inline void shift_right4(uint64_t* out, const uint64_t* u, int s) noexcept nogil:
    out[0] = join_right(u[1], u[0], s)
    out[1] = join_right(u[2], u[1], s)
    out[2] = join_right(u[3], u[2], s)
    out[3] = u[3] >> s


# Shifts `size` >= 1 limbs left into size + 1 limbs.
cdef inline void shift_left(uint64_t* out, const uint64_t* u, int size, int s) noexcept nogil:
    cdef int i = size - 1
    out[size] = join_left(0, u[i], s)
    while i > 0:
        out[i] = join_left(u[i], u[i - 1], s)
        i -= 1
    out[0] = u[0] << s


# Stores the digits size - n .. 0 of u / v in q, and the remainder in the low n limbs of u.
cdef inline void divide_digits(
    uint64_t* q, uint64_t* u, int size, const uint64_t* v, int n
) noexcept nogil:
    cdef int j = size - n
    if n == 4:
        while j >= 0:
            q[j] = digit4(&u[j], v)
            j -= 1
    elif n == 3:
        while j >= 0:
            q[j] = digit3(&u[j], v)
            j -= 1
    else:
        while j >= 0:
            q[j] = digit2(&u[j], v)
            j -= 1


# Divides the `size` <= 8 limbs of u by v, which has four limbs, of which the lowest n (2 to `size`)
# are significant. q gets size - n + 1 digits, `rest` four limbs. Both may alias u and v.
cdef inline void divide_by_limbs(
    uint64_t* q, uint64_t* rest, const uint64_t* u, int size, const uint64_t* v, int n
) noexcept nogil:
    cdef uint64_t dividend[9]
    cdef uint64_t divisor[5]
    cdef int s = clz64(v[n - 1])
    shift_left(dividend, u, size, s)
    shift_left(divisor, v, 4, s)
    divide_digits(q, dividend, size, divisor, n)
    if n < 4:
        dividend[3] = 0
    if n < 3:
        dividend[2] = 0
    shift_right4(rest, dividend, s)
