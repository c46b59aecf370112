"""The base field of BN254 and its quadratic extension: products, inverses, bytes."""

from fastevm.core.primitives.intrinsics cimport load64_big, lt256, store64_big

from fastevm.core.primitives.processor import IN_USE, SIMD_ALLOWED, replace


cdef extern from "fastevm/core/precompiles/bn254/field.h" nogil:
    const uint64_t PRIME_LIMBS "fp_p"[4]
    int fp_select(int allow)
    void mul_limbs "fp_mul"(uint64_t* r, const uint64_t* a, const uint64_t* b)
    void dot2_limbs "fp_dot2"(
        uint64_t* r, const uint64_t* a, const uint64_t* b, const uint64_t* c, const uint64_t* d)
    void mul2_limbs "fp2_mul"(uint64_t* r, const uint64_t* a, const uint64_t* b)
    void sqr2_limbs "fp2_sqr"(uint64_t* r, const uint64_t* a)
    void divide_limbs "fp_divide"(uint64_t* r, const uint64_t* c, const uint64_t* x)


PRIME = 0x30644e72e131a029b85045b68181585d97816a916871ca8d3c208c16d87cfd47

# 2^512 modulo the prime: multiplying by it converts to Montgomery form.
cdef Fp SQUARED_RADIX


cdef void fp_mul(Fp* r, const Fp* a, const Fp* b) noexcept nogil:
    mul_limbs(r.d, a.d, b.d)


cdef void fp_sqr(Fp* r, const Fp* a) noexcept nogil:
    mul_limbs(r.d, a.d, a.d)


cdef void fp_dot2(Fp* r, const Fp* a, const Fp* b, const Fp* c, const Fp* d) noexcept nogil:
    dot2_limbs(r.d, a.d, b.d, c.d, d.d)


# In Montgomery form the element stands for a / 2^256, so 2^512 is divided by it.
cdef void fp_inverse(Fp* r, const Fp* a) noexcept nogil:
    divide_limbs(r.d, SQUARED_RADIX.d, a.d)


cdef bint fp_load(Fp* r, const uint8_t* p) noexcept nogil:
    cdef Fp standard
    standard.d[3] = load64_big(p)
    standard.d[2] = load64_big(p + 8)
    standard.d[1] = load64_big(p + 16)
    standard.d[0] = load64_big(p + 24)
    if not lt256(standard.d, PRIME_LIMBS):
        return False
    fp_mul(r, &standard, &SQUARED_RADIX)
    return True


cdef void fp_store(uint8_t* p, const Fp* a) noexcept nogil:
    cdef Fp standard
    fp_zero(&standard)
    standard.d[0] = 1
    fp_mul(&standard, &standard, a)
    store64_big(p, standard.d[3])
    store64_big(p + 8, standard.d[2])
    store64_big(p + 16, standard.d[1])
    store64_big(p + 24, standard.d[0])


cdef void fp_from_int(Fp* r, object n) except *:
    cdef int i
    n = (n << 256) % PRIME
    for i in range(4):
        r.d[i] = (n >> (64 * i)) & 0xffffffffffffffff


cdef void fp2_mul(Fp2* r, const Fp2* a, const Fp2* b) noexcept nogil:
    mul2_limbs(<uint64_t*>r, <const uint64_t*>a, <const uint64_t*>b)


cdef void fp2_sqr(Fp2* r, const Fp2* a) noexcept nogil:
    sqr2_limbs(<uint64_t*>r, <const uint64_t*>a)


# 1 / (a + b u) = (a - b u) / (a^2 + b^2)
cdef void fp2_inverse(Fp2* r, const Fp2* a) noexcept nogil:
    cdef Fp norm, t
    fp_sqr(&norm, &a.re)
    fp_sqr(&t, &a.im)
    fp_add(&norm, &norm, &t)
    fp_inverse(&norm, &norm)
    fp_mul(&r.re, &a.re, &norm)
    fp_neg(&norm, &norm)
    fp_mul(&r.im, &a.im, &norm)


cdef void fp2_from_ints(Fp2* r, tuple pair) except *:
    fp_from_int(&r.re, pair[0])
    fp_from_int(&r.im, pair[1])


def select(allow: bool) -> bool:
    """Selects the multiplication: mulx and adx if allowed and supported, else 128-bit integers.

    Returns whether mulx and adx are in use. For tests.
    """
    return fp_select(allow) != 0


def multiply(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """Returns the product in the quadratic extension of (real, imaginary) pairs. For tests."""
    cdef Fp2 x, y
    fp2_from_ints(&x, a)
    fp2_from_ints(&y, b)
    fp2_mul(&x, &x, &y)
    return to_ints(&x)


def square(a: tuple[int, int]) -> tuple[int, int]:
    """Returns the square of a (real, imaginary) pair in the quadratic extension. For tests."""
    cdef Fp2 x
    fp2_from_ints(&x, a)
    fp2_sqr(&x, &x)
    return to_ints(&x)


def invert(a: tuple[int, int]) -> tuple[int, int]:
    """Returns the inverse of a (real, imaginary) pair; (0, 0) for (0, 0). For tests."""
    cdef Fp2 x
    fp2_from_ints(&x, a)
    fp2_inverse(&x, &x)
    return to_ints(&x)


cdef object to_ints(const Fp2* a):
    cdef uint8_t bytes[64]
    fp_store(bytes, &a.re)
    fp_store(bytes + 32, &a.im)
    return int.from_bytes(bytes[:32], "big"), int.from_bytes(bytes[32:64], "big")


def known_answer() -> bool:
    """Self-test: whether products of large numbers equal those of Python ints."""
    a, b = (PRIME - 1, PRIME // 3), (PRIME // 5, PRIME - 2)
    product = (a[0] * b[0] - a[1] * b[1]) % PRIME, (a[0] * b[1] + a[1] * b[0]) % PRIME
    square_of_a = (a[0] * a[0] - a[1] * a[1]) % PRIME, 2 * a[0] * a[1] % PRIME
    return multiply(a, b) == product and square(a) == square_of_a


def choose_code() -> None:
    """Selects the fastest multiplication that the processor supports and that passes the self-test.
    """
    IN_USE["bn254"] = "mulx and adx" if select(SIMD_ALLOWED) else "portable"
    if not known_answer():
        select(False)
        replace("bn254", IN_USE["bn254"], "portable")


fp_from_int(&FP_ONE, 1)
fp_from_int(&SQUARED_RADIX, 1 << 256)
choose_code()
