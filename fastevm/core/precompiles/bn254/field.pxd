# The base field of BN254 and its quadratic extension, used by both curves and the pairing.
#
# Elements are in Montgomery form and reduced, so equal elements have equal limbs. Every result may
# alias any operand. Sums and differences are inlined, products are calls.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.intrinsics cimport copy32


cdef extern from "fastevm/core/precompiles/bn254/field.h" nogil:
    void add_limbs "fp_add"(uint64_t* r, const uint64_t* a, const uint64_t* b)
    void sub_limbs "fp_sub"(uint64_t* r, const uint64_t* a, const uint64_t* b)
    void half_limbs "fp_half"(uint64_t* r, const uint64_t* a)


cdef struct Fp:
    uint64_t d[4]             # limb 0 is the least significant


cdef struct Fp2:              # re + im u, with u^2 = -1
    Fp re
    Fp im


# --- the base field ---

cdef Fp FP_ONE

cdef void fp_mul(Fp* r, const Fp* a, const Fp* b) noexcept nogil
cdef void fp_sqr(Fp* r, const Fp* a) noexcept nogil
# r = ab + cd
cdef void fp_dot2(Fp* r, const Fp* a, const Fp* b, const Fp* c, const Fp* d) noexcept nogil
# 1 / a, or 0 if a is 0.
cdef void fp_inverse(Fp* r, const Fp* a) noexcept nogil
# Decodes 32 big-endian bytes; false if they are not below the prime.
cdef bint fp_load(Fp* r, const uint8_t* p) noexcept nogil
cdef void fp_store(uint8_t* p, const Fp* a) noexcept nogil
# From a Python int, taken modulo the prime.
cdef void fp_from_int(Fp* r, object n) except *


cdef inline void fp_copy(Fp* r, const Fp* a) noexcept nogil:
    copy32(r, a)


cdef inline void fp_zero(Fp* r) noexcept nogil:
    r.d[0] = 0
    r.d[1] = 0
    r.d[2] = 0
    r.d[3] = 0


cdef inline bint fp_is_zero(const Fp* a) noexcept nogil:
    return (a.d[0] | a.d[1] | a.d[2] | a.d[3]) == 0


cdef inline bint fp_eq(const Fp* a, const Fp* b) noexcept nogil:
    return ((a.d[0] ^ b.d[0]) | (a.d[1] ^ b.d[1]) | (a.d[2] ^ b.d[2]) | (a.d[3] ^ b.d[3])) == 0


cdef inline void fp_add(Fp* r, const Fp* a, const Fp* b) noexcept nogil:
    add_limbs(r.d, a.d, b.d)


cdef inline void fp_sub(Fp* r, const Fp* a, const Fp* b) noexcept nogil:
    sub_limbs(r.d, a.d, b.d)


cdef inline void fp_double(Fp* r, const Fp* a) noexcept nogil:
    add_limbs(r.d, a.d, a.d)


cdef inline void fp_half(Fp* r, const Fp* a) noexcept nogil:
    half_limbs(r.d, a.d)


cdef inline void fp_neg(Fp* r, const Fp* a) noexcept nogil:
    cdef Fp zero
    fp_zero(&zero)
    sub_limbs(r.d, zero.d, a.d)


# --- the quadratic extension ---

cdef void fp2_mul(Fp2* r, const Fp2* a, const Fp2* b) noexcept nogil
cdef void fp2_sqr(Fp2* r, const Fp2* a) noexcept nogil
cdef void fp2_inverse(Fp2* r, const Fp2* a) noexcept nogil
# From a pair of Python ints, real part first.
cdef void fp2_from_ints(Fp2* r, tuple pair) except *


cdef inline void fp2_copy(Fp2* r, const Fp2* a) noexcept nogil:
    fp_copy(&r.re, &a.re)
    fp_copy(&r.im, &a.im)


cdef inline void fp2_zero(Fp2* r) noexcept nogil:
    fp_zero(&r.re)
    fp_zero(&r.im)


cdef inline void fp2_one(Fp2* r) noexcept nogil:
    fp_copy(&r.re, &FP_ONE)
    fp_zero(&r.im)


cdef inline bint fp2_is_zero(const Fp2* a) noexcept nogil:
    return fp_is_zero(&a.re) and fp_is_zero(&a.im)


cdef inline bint fp2_eq(const Fp2* a, const Fp2* b) noexcept nogil:
    return fp_eq(&a.re, &b.re) and fp_eq(&a.im, &b.im)


cdef inline void fp2_add(Fp2* r, const Fp2* a, const Fp2* b) noexcept nogil:
    fp_add(&r.re, &a.re, &b.re)
    fp_add(&r.im, &a.im, &b.im)


cdef inline void fp2_sub(Fp2* r, const Fp2* a, const Fp2* b) noexcept nogil:
    fp_sub(&r.re, &a.re, &b.re)
    fp_sub(&r.im, &a.im, &b.im)


cdef inline void fp2_double(Fp2* r, const Fp2* a) noexcept nogil:
    fp_double(&r.re, &a.re)
    fp_double(&r.im, &a.im)


cdef inline void fp2_half(Fp2* r, const Fp2* a) noexcept nogil:
    fp_half(&r.re, &a.re)
    fp_half(&r.im, &a.im)


cdef inline void fp2_neg(Fp2* r, const Fp2* a) noexcept nogil:
    fp_neg(&r.re, &a.re)
    fp_neg(&r.im, &a.im)


cdef inline void fp2_conjugate(Fp2* r, const Fp2* a) noexcept nogil:
    fp_copy(&r.re, &a.re)
    fp_neg(&r.im, &a.im)


# r = a k, for k in the base field.
cdef inline void fp2_scale(Fp2* r, const Fp2* a, const Fp* k) noexcept nogil:
    fp_mul(&r.re, &a.re, k)
    fp_mul(&r.im, &a.im, k)


# r = a (9 + u): the number whose roots define the higher extensions.
cdef inline void fp2_mul_xi(Fp2* r, const Fp2* a) noexcept nogil:
    cdef Fp2 t
    fp2_double(&t, a)
    fp2_double(&t, &t)
    fp2_double(&t, &t)
    fp2_add(&t, &t, a)
    fp_sub(&t.re, &t.re, &a.im)
    fp_add(&r.im, &t.im, &a.re)
    fp_copy(&r.re, &t.re)
