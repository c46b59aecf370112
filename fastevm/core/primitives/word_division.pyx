"""Division, remainders and powers of 256-bit words."""

from libc.stdint cimport uint64_t

from fastevm.core.primitives.barrett cimport (
    RepeatedModulus, last_modulus, modulus_repeats, reduce_repeated,
)
from fastevm.core.primitives.intrinsics cimport copy32, ctz64
from fastevm.core.primitives.limbs cimport divide_by_limb, divide_by_limbs, mul_add
from fastevm.core.primitives.word cimport (
    Word, word_add, word_add_carry, word_bits, word_copy, word_fits64, word_is_zero, word_lt,
    word_mul, word_negate, word_set, word_shl, word_sub, word_zero,
)


# Returns the number of significant limbs; 1 for zero.
cdef inline int word_limbs(const Word* a) noexcept nogil:
    if a.d[3] != 0:
        return 4
    if a.d[2] != 0:
        return 3
    if a.d[1] != 0:
        return 2
    return 1


cdef void word_divmod(Word* q, Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef Word quotient
    cdef int n = word_limbs(b)
    if word_lt(a, b):
        word_copy(r, a)
        word_zero(q)
        return
    word_zero(&quotient)
    if n == 1:
        word_set(r, divide_by_limb(quotient.d, a.d, word_limbs(a), b.d[0]))
    else:
        divide_by_limbs(quotient.d, r.d, a.d, word_limbs(a), b.d, n)
    word_copy(q, &quotient)


# --- signed ---

cdef inline void word_absolute(Word* r, const Word* a) noexcept nogil:
    if (a.d[3] >> 63) != 0:
        word_negate(r, a)
    else:
        word_copy(r, a)


# Truncated division; the most negative number divided by -1 is itself.
cdef void word_sdiv(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef Word x, y
    cdef bint negative = ((a.d[3] ^ b.d[3]) >> 63) != 0
    word_absolute(&x, a)
    word_absolute(&y, b)
    word_div(r, &x, &y)
    if negative:
        word_negate(r, r)


# Remainder with the sign of the dividend.
cdef void word_smod(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef Word x, y
    cdef bint negative = (a.d[3] >> 63) != 0
    word_absolute(&x, a)
    word_absolute(&y, b)
    word_mod(r, &x, &y)
    if negative:
        word_negate(r, r)


# --- modular ---

# Reduces `size` <= 8 limbs modulo n != 0.
cdef inline void reduce_limbs(Word* r, const uint64_t* u, int size, const Word* n) noexcept nogil:
    cdef uint64_t quotient[8]
    cdef int limbs = word_limbs(n)
    while size > 1 and u[size - 1] == 0:
        size -= 1
    if limbs == 1:
        word_set(r, divide_by_limb(quotient, u, size, n.d[0]))
    elif size >= limbs:
        divide_by_limbs(quotient, r.d, u, size, n.d, limbs)
    else:
        r.d[3] = 0
        r.d[2] = u[2] if size > 2 else 0
        r.d[1] = u[1] if size > 1 else 0
        r.d[0] = u[0]


# Computes a + b modulo n, for a and b below 2n: at most one subtraction reduces each operand, and
# at most one more reduces the sum.
cdef inline void add_reduced(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil:
    cdef Word x, y
    word_copy(&x, a)
    word_copy(&y, b)
    if not word_lt(&x, n):
        word_sub(&x, &x, n)
    if not word_lt(&y, n):
        word_sub(&y, &y, n)
    if word_add_carry(&x, &x, &y) or not word_lt(&x, n):
        word_sub(&x, &x, n)
    word_copy(r, &x)


# (a + b) mod n over the full 257-bit sum.
cdef void word_addmod(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil:
    cdef Word low
    cdef uint64_t total[5]
    if n.d[3] != 0 and a.d[3] <= n.d[3] and b.d[3] <= n.d[3]:
        add_reduced(r, a, b, n)
    elif word_is_zero(n):
        word_zero(r)
    else:
        total[4] = <uint64_t>word_add_carry(&low, a, b)
        total[0] = low.d[0]
        total[1] = low.d[1]
        total[2] = low.d[2]
        total[3] = low.d[3]
        reduce_limbs(r, total, 5, n)


# p[0..4] += a * b; p[4] is set, not added to.
cdef inline void mul_row(uint64_t* p, uint64_t a, const Word* b) noexcept nogil:
    cdef uint64_t carry = 0
    p[0] = mul_add(a, b.d[0], p[0], &carry)
    p[1] = mul_add(a, b.d[1], p[1], &carry)
    p[2] = mul_add(a, b.d[2], p[2], &carry)
    p[3] = mul_add(a, b.d[3], p[3], &carry)
    p[4] = carry


# Computes the full product, with 8 limbs.
cdef inline void word_mul_full(uint64_t* p, const Word* a, const Word* b) noexcept nogil:
    p[0] = 0
    p[1] = 0
    p[2] = 0
    p[3] = 0
    mul_row(p, a.d[0], b)
    mul_row(p + 1, a.d[1], b)
    mul_row(p + 2, a.d[2], b)
    mul_row(p + 3, a.d[3], b)


# Reduces modulo 2^256 - 1, which contracts use for 512-bit products (mulDiv): 2^256 reduces to 1.
cdef inline void reduce_all_ones(Word* r, const uint64_t* p) noexcept nogil:
    cdef Word low, high, one
    word_set(&one, 1)
    copy32(&low, p)
    copy32(&high, p + 4)
    if word_add_carry(&low, &low, &high):
        word_add(&low, &low, &one)
    if (low.d[0] & low.d[1] & low.d[2] & low.d[3]) == ~<uint64_t>0:
        word_zero(&low)
    word_copy(r, &low)


# (a * b) mod n over the full 512-bit product.
cdef void word_mulmod(Word* r, const Word* a, const Word* b, const Word* n) noexcept nogil:
    cdef uint64_t product[8]
    cdef RepeatedModulus* last
    if word_is_zero(n):
        word_zero(r)
        return
    word_mul_full(product, a, b)
    if (n.d[0] & n.d[1] & n.d[2] & n.d[3]) == ~<uint64_t>0:
        reduce_all_ones(r, product)
        return
    if n.d[3] != 0 and (product[4] | product[5] | product[6] | product[7]) != 0:
        last = last_modulus()
        if modulus_repeats(last, n.d):
            reduce_repeated(r.d, product, last)
            return
    reduce_limbs(r, product, 8, n)


# --- powers ---

# a * b, fast if b has one limb.
cdef inline void word_mul_short(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef uint64_t carry = 0, limb = b.d[0]
    if not word_fits64(b):
        word_mul(r, a, b)
        return
    r.d[0] = mul_add(a.d[0], limb, 0, &carry)
    r.d[1] = mul_add(a.d[1], limb, 0, &carry)
    r.d[2] = mul_add(a.d[2], limb, 0, &carry)
    r.d[3] = a.d[3] * limb + carry


# Computes a^2 modulo 2^256. Products of two different limbs count twice.
cdef inline void word_square(Word* r, const Word* a) noexcept nogil:
    cdef uint64_t a0 = a.d[0], a1 = a.d[1], a2 = a.d[2], a3 = a.d[3]
    cdef uint64_t r1, r2, r3, carry = 0
    r1 = mul_add(a0, a1, 0, &carry)
    r2 = mul_add(a0, a2, 0, &carry)
    r3 = a0 * a3 + carry + a1 * a2
    r3 = (r3 << 1) | (r2 >> 63)
    r2 = (r2 << 1) | (r1 >> 63)
    r1 <<= 1
    carry = 0
    r.d[0] = mul_add(a0, a0, 0, &carry)
    r.d[1] = r1 + carry
    carry = r.d[1] < r1
    r.d[2] = mul_add(a1, a1, r2, &carry)
    r.d[3] = r3 + carry


# Computes (2^k)^exponent with a single shift.
cdef inline void power_of_two_power(Word* r, int k, const Word* exponent) noexcept nogil:
    cdef Word one, shift
    word_set(&one, 1)
    if k == 0:
        word_copy(r, &one)
    elif not word_fits64(exponent) or exponent.d[0] >= 256:
        word_zero(r)
    else:
        word_set(&shift, exponent.d[0] * <uint64_t>k)
        word_shl(r, &shift, &one)


cdef void word_exp(Word* r, const Word* base, const Word* exponent) noexcept nogil:
    cdef Word b, e, power
    cdef int i
    if word_is_zero(exponent):
        word_set(r, 1)
        return
    if word_fits64(base) and (base.d[0] & (base.d[0] - 1)) == 0:
        if base.d[0] == 0:
            word_zero(r)
        else:
            power_of_two_power(r, ctz64(base.d[0]), exponent)
        return
    word_copy(&b, base)
    word_copy(&e, exponent)
    word_copy(&power, base)
    # Squares from the top bit down, so that every other product has the (often short) base as a
    # factor.
    i = word_bits(&e) - 2
    while i >= 0:
        word_square(&power, &power)
        if ((e.d[i >> 6] >> (i & 63)) & 1) != 0:
            word_mul_short(&power, &power, &b)
        i -= 1
    word_copy(r, &power)
