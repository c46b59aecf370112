# The 256-bit word: arithmetic modulo 2^256, bits, shifts and big-endian bytes, in place.
#
# Every result may alias any operand. Never pass, return or assign a Word by value in hot code:
# the compiler would use 16-byte moves, which wait for the store buffer.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport (
    add256, clz64, copy32, load16_big, load32_big, load64_big, lt256, slt256, store32_big,
    store64_big, sub256,
)
from fastevm.core.primitives.limbs cimport join_left, join_right, mul_add


cdef struct Word:
    uint64_t d[4]             # limb 0 is the least significant


# --- construction and comparison ---

cdef inline void word_zero(Word* r) noexcept nogil:
    r.d[0] = 0
    r.d[1] = 0
    r.d[2] = 0
    r.d[3] = 0


cdef inline void word_set(Word* r, uint64_t value) noexcept nogil:
    r.d[0] = value
    r.d[1] = 0
    r.d[2] = 0
    r.d[3] = 0


cdef inline void word_from_limbs(
    Word* r, uint64_t d0, uint64_t d1, uint64_t d2, uint64_t d3
) noexcept nogil:
    r.d[0] = d0
    r.d[1] = d1
    r.d[2] = d2
    r.d[3] = d3


cdef inline void word_copy(Word* r, const Word* a) noexcept nogil:
    copy32(r, a)


cdef inline bint word_is_zero(const Word* a) noexcept nogil:
    return (a.d[0] | a.d[1] | a.d[2] | a.d[3]) == 0


cdef inline bint word_eq(const Word* a, const Word* b) noexcept nogil:
    return ((a.d[0] ^ b.d[0]) | (a.d[1] ^ b.d[1]) | (a.d[2] ^ b.d[2]) | (a.d[3] ^ b.d[3])) == 0


cdef inline bint word_lt(const Word* a, const Word* b) noexcept nogil:
    return lt256(a.d, b.d)


# Compares two's complement numbers (SLT).
cdef inline bint word_slt(const Word* a, const Word* b) noexcept nogil:
    return slt256(a.d, b.d)


cdef inline bint word_fits64(const Word* a) noexcept nogil:
    return (a.d[1] | a.d[2] | a.d[3]) == 0


# Returns the number of significant bits; 0 for zero.
cdef inline int word_bits(const Word* a) noexcept nogil:
    if a.d[3] != 0:
        return 256 - clz64(a.d[3])
    if a.d[2] != 0:
        return 192 - clz64(a.d[2])
    if a.d[1] != 0:
        return 128 - clz64(a.d[1])
    if a.d[0] != 0:
        return 64 - clz64(a.d[0])
    return 0


# --- arithmetic modulo 2^256 ---

cdef inline void word_add(Word* r, const Word* a, const Word* b) noexcept nogil:
    add256(r.d, a.d, b.d)


cdef inline void word_sub(Word* r, const Word* a, const Word* b) noexcept nogil:
    sub256(r.d, a.d, b.d)


# Returns whether the sum overflows.
cdef inline bint word_add_carry(Word* r, const Word* a, const Word* b) noexcept nogil:
    return add256(r.d, a.d, b.d)


cdef inline void word_negate(Word* r, const Word* a) noexcept nogil:
    cdef Word zero
    word_zero(&zero)
    sub256(r.d, zero.d, a.d)


cdef inline void word_mul(Word* r, const Word* a, const Word* b) noexcept nogil:
    cdef uint64_t a0 = a.d[0], a1 = a.d[1], a2 = a.d[2], a3 = a.d[3]
    cdef uint64_t b0 = b.d[0], b1 = b.d[1], b2 = b.d[2], b3 = b.d[3]
    cdef uint64_t r1, r2, r3, carry = 0
    r.d[0] = mul_add(a0, b0, 0, &carry)
    r1 = mul_add(a0, b1, 0, &carry)
    r2 = mul_add(a0, b2, 0, &carry)
    r3 = a0 * b3 + carry
    carry = 0
    r.d[1] = mul_add(a1, b0, r1, &carry)
    r2 = mul_add(a1, b1, r2, &carry)
    r3 = r3 + a1 * b2 + carry
    carry = 0
    r.d[2] = mul_add(a2, b0, r2, &carry)
    r.d[3] = r3 + a2 * b1 + carry + a3 * b0


# --- bits ---

cdef inline void word_and(Word* r, const Word* a, const Word* b) noexcept nogil:
    r.d[0] = a.d[0] & b.d[0]
    r.d[1] = a.d[1] & b.d[1]
    r.d[2] = a.d[2] & b.d[2]
    r.d[3] = a.d[3] & b.d[3]


cdef inline void word_or(Word* r, const Word* a, const Word* b) noexcept nogil:
    r.d[0] = a.d[0] | b.d[0]
    r.d[1] = a.d[1] | b.d[1]
    r.d[2] = a.d[2] | b.d[2]
    r.d[3] = a.d[3] | b.d[3]


cdef inline void word_xor(Word* r, const Word* a, const Word* b) noexcept nogil:
    r.d[0] = a.d[0] ^ b.d[0]
    r.d[1] = a.d[1] ^ b.d[1]
    r.d[2] = a.d[2] ^ b.d[2]
    r.d[3] = a.d[3] ^ b.d[3]


cdef inline void word_not(Word* r, const Word* a) noexcept nogil:
    r.d[0] = ~a.d[0]
    r.d[1] = ~a.d[1]
    r.d[2] = ~a.d[2]
    r.d[3] = ~a.d[3]


# Shift left by n < 256 bits.
cdef inline void shift_left(Word* r, uint64_t n, const Word* value) noexcept nogil:
    cdef uint64_t v0 = value.d[0], v1 = value.d[1], v2 = value.d[2], v3 = value.d[3]
    cdef int s = <int>(n & 63)
    if n < 64:
        word_from_limbs(
            r, v0 << s, join_left(v1, v0, s), join_left(v2, v1, s), join_left(v3, v2, s)
        )
    elif n < 128:
        word_from_limbs(r, 0, v0 << s, join_left(v1, v0, s), join_left(v2, v1, s))
    elif n < 192:
        word_from_limbs(r, 0, 0, v0 << s, join_left(v1, v0, s))
    else:
        word_from_limbs(r, 0, 0, 0, v0 << s)


# Shift right by n < 256 bits; fills with `fill` (all zeros or all ones) from the left.
cdef inline void shift_right(Word* r, uint64_t n, const Word* value, uint64_t fill) noexcept nogil:
    cdef uint64_t v0 = value.d[0], v1 = value.d[1], v2 = value.d[2], v3 = value.d[3]
    cdef int s = <int>(n & 63)
    cdef uint64_t top = join_right(fill, v3, s)
    if n < 64:
        word_from_limbs(r, join_right(v1, v0, s), join_right(v2, v1, s), join_right(v3, v2, s), top)
    elif n < 128:
        word_from_limbs(r, join_right(v2, v1, s), join_right(v3, v2, s), top, fill)
    elif n < 192:
        word_from_limbs(r, join_right(v3, v2, s), top, fill, fill)
    else:
        word_from_limbs(r, top, fill, fill, fill)


cdef inline bint shift_is_long(const Word* shift) noexcept nogil:
    return ((shift.d[0] >> 8) | shift.d[1] | shift.d[2] | shift.d[3]) != 0


cdef inline void word_shl(Word* r, const Word* shift, const Word* value) noexcept nogil:
    if shift_is_long(shift):
        word_zero(r)
    else:
        shift_left(r, shift.d[0], value)


cdef inline void word_shr(Word* r, const Word* shift, const Word* value) noexcept nogil:
    if shift_is_long(shift):
        word_zero(r)
    else:
        shift_right(r, shift.d[0], value, 0)


# Arithmetic shift right (SAR): fills with the sign.
cdef inline void word_sar(Word* r, const Word* shift, const Word* value) noexcept nogil:
    cdef uint64_t fill = <uint64_t>(<int64_t>value.d[3] >> 63)
    if shift_is_long(shift):
        word_from_limbs(r, fill, fill, fill, fill)
    else:
        shift_right(r, shift.d[0], value, fill)


# Returns the byte at `index`, of which 0 is the most significant; zero if the index is above 31.
cdef inline void word_byte(Word* r, const Word* index, const Word* value) noexcept nogil:
    cdef uint64_t n = index.d[0]
    if n >= 32 or not word_fits64(index):
        word_zero(r)
    else:
        word_set(r, (value.d[3 - (n >> 3)] >> (56 - ((n & 7) << 3))) & 0xff)


# Sign-extends from the byte at `index`; index 0 is the least significant.
cdef inline void word_signextend(Word* r, const Word* index, const Word* value) noexcept nogil:
    cdef uint64_t n = index.d[0]
    cdef uint64_t limb, fill
    cdef int s
    if n >= 31 or not word_fits64(index):
        word_copy(r, value)
        return
    s = <int>(56 - ((n & 7) << 3))
    n >>= 3
    limb = <uint64_t>(<int64_t>(value.d[n] << s) >> s)
    fill = <uint64_t>(<int64_t>limb >> 63)
    word_copy(r, value)
    r.d[n] = limb
    if n < 3:
        r.d[3] = fill
    if n < 2:
        r.d[2] = fill
    if n < 1:
        r.d[1] = fill


# --- big-endian bytes ---

cdef inline void word_load(Word* r, const uint8_t* p) noexcept nogil:
    r.d[3] = load64_big(p)
    r.d[2] = load64_big(p + 8)
    r.d[1] = load64_big(p + 16)
    r.d[0] = load64_big(p + 24)


cdef inline void word_store(uint8_t* p, const Word* a) noexcept nogil:
    cdef uint64_t a0 = a.d[0], a1 = a.d[1], a2 = a.d[2], a3 = a.d[3]
    store64_big(p, a3)
    store64_big(p + 8, a2)
    store64_big(p + 16, a1)
    store64_big(p + 24, a0)


# Reads `n` < 8 big-endian bytes and nothing beyond them.
cdef inline uint64_t load_tail(const uint8_t* p, size_t n) noexcept nogil:
    if n >= 4:
        return (<uint64_t>load32_big(p) << ((n - 4) << 3)) | load32_big(p + n - 4)
    if n >= 2:
        return (<uint64_t>load16_big(p) << ((n - 2) << 3)) | load16_big(p + n - 2)
    return p[0] if n == 1 else 0


# Reads `n` <= 32 big-endian bytes and nothing beyond them.
cdef inline void word_load_n(Word* r, const uint8_t* p, size_t n) noexcept nogil:
    word_zero(r)
    if n < 8:
        r.d[0] = load_tail(p, n)
        return
    r.d[0] = load64_big(p + n - 8)
    if n < 16:
        r.d[1] = load_tail(p, n - 8)
        return
    r.d[1] = load64_big(p + n - 16)
    if n < 24:
        r.d[2] = load_tail(p, n - 16)
        return
    r.d[2] = load64_big(p + n - 24)
    if n < 32:
        r.d[3] = load_tail(p, n - 24)
    else:
        r.d[3] = load64_big(p)


cdef inline void word_from_address(Word* r, const Address* a) noexcept nogil:
    r.d[0] = load64_big(&a.b[12])
    r.d[1] = load64_big(&a.b[4])
    r.d[2] = load32_big(&a.b[0])
    r.d[3] = 0


# Returns the low 20 bytes as an address.
cdef inline void word_to_address(Address* r, const Word* a) noexcept nogil:
    store32_big(&r.b[0], <unsigned int>a.d[2])
    store64_big(&r.b[4], a.d[1])
    store64_big(&r.b[12], a.d[0])


# --- Python ints (word.pyx) ---

# Raise OverflowError if the int is negative or over 256 (64) bits, and TypeError if it is not an
# int. The error text mentions `name`.
cdef int word_from_int(Word* r, object n) except -1
cdef int word_from_named(Word* r, object n, str name) except -1
cdef uint64_t uint64_from_named(object n, str name) except? 0
cdef object word_to_int(const Word* a)
