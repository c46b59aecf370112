/* Numbers modulo the order n of secp256k1, and their halves (GLV), for recovery in lanes. */
#ifndef FASTEVM_SECP256K1_SCALARS_H
#define FASTEVM_SECP256K1_SCALARS_H

#include <stdint.h>
#include <string.h>

#include "fastevm/core/primitives/intrinsics.h"

typedef struct {
    uint64_t d[4]; /* least significant first */
} fe_scalar;

static const fe_scalar FE_ORDER = {
    {0xBFD25E8CD0364141ULL, 0xBAAEDCE6AF48A03BULL, 0xFFFFFFFFFFFFFFFEULL, 0xFFFFFFFFFFFFFFFFULL}};
/* 2^256 - n */
static const uint64_t FE_ORDER_FOLD[3] = {0x402DA1732FC9BEBFULL, 0x4551231950B75FC4ULL, 1};

/* (A1, -B1) and (A2, A1) are the short vectors of the lattice of all (x, y) with x + y * lambda
   = 0 modulo n, where lambda is a cube root of 1. FE_G1 and FE_G2 are A1 and B1 times 2^384 / n,
   rounded. */
static const uint64_t FE_A1[2] = {0xE86C90E49284EB15ULL, 0x3086D221A7D46BCDULL};
static const uint64_t FE_B1[2] = {0x6F547FA90ABFE4C3ULL, 0xE4437ED6010E8828ULL};
static const uint64_t FE_A2[3] = {0x57C1108D9D44CFD8ULL, 0x14CA50F7A8E2F3F6ULL, 1};
static const fe_scalar FE_G1 = {
    {0xE893209A45DBB031ULL, 0x3DAA8A1471E8CA7FULL, 0xE86C90E49284EB15ULL, 0x3086D221A7D46BCDULL}};
static const fe_scalar FE_G2 = {
    {0x1571B4AE8AC47F71ULL, 0x221208AC9DF506C6ULL, 0x6F547FA90ABFE4C4ULL, 0xE4437ED6010E8828ULL}};

/* out (an + bn words) = a * b */
static inline void fe_words_mul(uint64_t* out, const uint64_t* a, int an, const uint64_t* b,
                                int bn) {
    memset(out, 0, (size_t)(an + bn) * sizeof *out);
    for (int i = 0; i < an; i++) {
        uint64_t carry = 0;
        for (int j = 0; j < bn; j++) {
            fe_u128 t = (fe_u128)a[i] * b[j] + out[i + j] + carry;
            out[i + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
        out[i + bn] = carry;
    }
}

/* Reduces a number below 2n with at most one subtraction. */
static inline void fe_scalar_once(fe_scalar* r) {
    fe_scalar less = *r;
    if (!fe_sub256(less.d, less.d, FE_ORDER.d)) *r = less;
}

/* r += a * b + carry; returns the carry. */
static inline uint64_t fe_word_mul(uint64_t* r, uint64_t a, uint64_t b, uint64_t carry) {
    fe_u128 t = (fe_u128)a * b + *r + carry;
    *r = (uint64_t)t;
    return (uint64_t)(t >> 64);
}

/* r += the folded bits above 2^256; stores the new bits above 2^256 in `over`. */
static inline void fe_scalar_fold(uint64_t* r, const uint64_t* above, int words, uint64_t* over) {
    uint64_t sum[8] = {r[0], r[1], r[2], r[3]};
#pragma GCC unroll 4
    for (int i = 0; i < words; i++) {
        uint64_t carry = fe_word_mul(&sum[i], above[i], FE_ORDER_FOLD[0], 0);
        carry = fe_word_mul(&sum[i + 1], above[i], FE_ORDER_FOLD[1], carry);
        carry = fe_word_mul(&sum[i + 2], above[i], FE_ORDER_FOLD[2], carry);
#pragma GCC unroll 8
        for (int j = i + 3; j < 8; j++) {
            sum[j] += carry;
            carry = sum[j] < carry;
        }
    }
    memcpy(r, sum, 4 * sizeof *r);
    memcpy(over, sum + 4, 3 * sizeof *over);
}

static void fe_scalar_mul(fe_scalar* r, const fe_scalar* a, const fe_scalar* b) {
    uint64_t t[8] = {0}, over[3];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        uint64_t carry = 0;
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) carry = fe_word_mul(&t[i + j], a->d[i], b->d[j], carry);
        t[i + 4] = carry;
    }
    fe_scalar_fold(t, t + 4, 4, over); /* 256 bits above */
    fe_scalar_fold(t, over, 3, over);  /* 130 */
    fe_scalar_fold(t, over, 1, over);  /* 4 */
    fe_scalar_fold(t, over, 1, over);  /* a carry */
    memcpy(r->d, t, sizeof r->d);
    fe_scalar_once(r);
}

/* a^(n - 2) */
static void fe_scalar_inverse(fe_scalar* r, const fe_scalar* a) {
    fe_scalar powers[16], result = *a, exponent = FE_ORDER;
    exponent.d[0] -= 2;
    powers[1] = *a;
    for (int i = 2; i < 16; i++) fe_scalar_mul(&powers[i], &powers[i - 1], a);
    for (int at = 63; at >= 0; at--) {
        int digit = (int)(exponent.d[at >> 4] >> (4 * (at & 15))) & 15;
        if (at == 63) {
            result = powers[digit];
            continue;
        }
        for (int i = 0; i < 4; i++) fe_scalar_mul(&result, &result, &result);
        if (digit) fe_scalar_mul(&result, &result, &powers[digit]);
    }
    *r = result;
}

static inline void fe_scalar_negate(fe_scalar* r) {
    fe_scalar negative = FE_ORDER;
    if ((r->d[0] | r->d[1] | r->d[2] | r->d[3]) == 0) return;
    fe_sub256(negative.d, negative.d, r->d);
    *r = negative;
}

/* An odd number below 2^130 with its sign. */
typedef struct {
    uint64_t d[3];
    int negative;
} fe_half;

/* round(k * g / 2^384), below 2^128 */
static inline void fe_quotient(uint64_t out[2], const fe_scalar* k, const fe_scalar* g) {
    uint64_t wide[8];
    fe_words_mul(wide, k->d, 4, g->d, 4);
    uint64_t up = wide[5] >> 63;
    out[0] = wide[6] + up;
    out[1] = wide[7] + (out[0] < up);
}

static inline void fe_half_of(fe_half* half, uint64_t words[4]) {
    half->negative = (int)(words[3] >> 63);
    if (half->negative) {
        uint64_t zero[4] = {0};
        fe_sub256(zero, zero, words);
        memcpy(words, zero, sizeof zero);
    }
    memcpy(half->d, words, sizeof half->d);
}

/* Splits k = first + second * lambda modulo n. Both halves are odd, so no window of a half is
   zero. */
static void fe_split(const fe_scalar* k, fe_half* first, fe_half* second) {
    uint64_t c1[2], c2[2], product[5], x[4], y[4] = {0};
    const uint64_t a1[4] = {FE_A1[0], FE_A1[1]}, b1[4] = {FE_B1[0], FE_B1[1]};
    const uint64_t a2[4] = {FE_A2[0], FE_A2[1], FE_A2[2]};
    fe_quotient(c1, k, &FE_G1);
    fe_quotient(c2, k, &FE_G2);
    memcpy(x, k->d, sizeof x);
    fe_words_mul(product, c1, 2, FE_A1, 2);
    fe_sub256(x, x, product);
    fe_words_mul(product, c2, 2, FE_A2, 3);
    fe_sub256(x, x, product);
    fe_words_mul(product, c1, 2, FE_B1, 2);
    fe_add256(y, y, product);
    fe_words_mul(product, c2, 2, FE_A1, 2);
    fe_sub256(y, y, product);
    /* Adding a vector of the lattice changes parities: (A1, -B1) is (odd, odd), (A2, A1) is
       (even, odd). */
    if (!(x[0] & 1)) {
        fe_add256(x, x, a1);
        fe_sub256(y, y, b1);
    }
    if (!(y[0] & 1)) {
        fe_add256(x, x, a2);
        fe_add256(y, y, a1);
    }
    fe_half_of(first, x);
    fe_half_of(second, y);
}

/* Digit `at` in base 2^bits of an odd number. The digit is odd and between -2^bits and 2^bits. The
   number is the sum of its weighted digits; the last digit takes the remainder. */
static inline int fe_digit(const fe_half* half, int at, int bits, int last) {
    int from = at * bits, word = from >> 6, offset = from & 63;
    uint64_t part = half->d[word] >> offset;
    if (offset && word < 2) part |= half->d[word + 1] << (64 - offset);
    int digit = last ? (int)(part | 1)
                     : (int)((part & ((2u << bits) - 1)) | 1) - (1 << bits);
    return half->negative ? -digit : digit;
}
#endif
