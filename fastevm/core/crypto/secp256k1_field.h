/* Numbers modulo secp256k1's field prime p = 2^256 - 2^32 - 977, eight in parallel (AVX-512 IFMA).

   A number is five limbs of 52 bits; the lanes of a vector hold eight independent numbers. Every
   function takes and returns numbers below 2^257 with 52-bit limbs, because that is what the
   instructions multiply. Numbers are fully reduced only on output. */
#ifndef FASTEVM_SECP256K1_FIELD_H
#define FASTEVM_SECP256K1_FIELD_H

#include <stdint.h>
#include <string.h>

#include "fastevm/core/crypto/secp256k1_vectors.h"

#define FE_IFMA_INLINE FE_IFMA static inline __attribute__((always_inline))
#define FE_LIMBS 5

typedef uint64_t fe_lane __attribute__((may_alias)); /* one lane of a vector */

typedef struct {
    fe_vec v[FE_LIMBS];
} fe_num;

static const uint64_t FE_MASK52 = (1ULL << 52) - 1;
static const uint64_t FE_MASK48 = (1ULL << 48) - 1;
static const uint64_t FE_FOLD256 = 0x1000003D1ULL;  /* 2^256 modulo p */
static const uint64_t FE_FOLD260 = 0x1000003D10ULL; /* 2^260 modulo p */
static const uint64_t FE_P[FE_LIMBS] = {0xFFFFEFFFFFC2FULL, 0xFFFFFFFFFFFFFULL, 0xFFFFFFFFFFFFFULL,
                                        0xFFFFFFFFFFFFFULL, 0x0FFFFFFFFFFFFULL};

#define FE_CARRY(to, from)                                                                         \
    to = FE_VEC_ADD(to, FE_VEC_RIGHT(from, 52));                                        \
    from = FE_VEC_AND(from, FE_ALL(FE_MASK52));

/* Limbs of up to 60 bits: fold the bits above 2^256, then propagate carries. */
FE_IFMA_INLINE void fe_tidy(fe_num* r) {
    fe_vec *v = r->v, above = FE_VEC_RIGHT(v[4], 48);
    v[4] = FE_VEC_AND(v[4], FE_ALL(FE_MASK48));
    v[0] = FE_LOW(v[0], above, FE_ALL(FE_FOLD256));
    FE_CARRY(v[1], v[0])
    FE_CARRY(v[2], v[1])
    FE_CARRY(v[3], v[2])
    FE_CARRY(v[4], v[3])
}

/* Reduces a product, given as ten columns of up to 56 bits each, to a number. */
FE_IFMA_INLINE void fe_reduce(fe_num* r, fe_vec* t) {
    const fe_vec fold = FE_ALL(FE_FOLD260);
    fe_vec over = FE_VEC_ZERO();
    FE_CARRY(t[6], t[5])
    FE_CARRY(t[7], t[6])
    FE_CARRY(t[8], t[7])
    FE_CARRY(t[9], t[8])
#pragma GCC unroll 5
    for (int i = 0; i < FE_LIMBS; i++) t[i] = FE_LOW(t[i], t[5 + i], fold);
#pragma GCC unroll 5
    for (int i = 0; i < FE_LIMBS - 1; i++) t[i + 1] = FE_HIGH(t[i + 1], t[5 + i], fold);
    over = FE_HIGH(over, t[9], fold);
    FE_CARRY(t[1], t[0])
    FE_CARRY(t[2], t[1])
    FE_CARRY(t[3], t[2])
    FE_CARRY(t[4], t[3])
    FE_CARRY(over, t[4])
    over = FE_VEC_OR(FE_VEC_LEFT(over, 4), FE_VEC_RIGHT(t[4], 48));
    t[4] = FE_VEC_AND(t[4], FE_ALL(FE_MASK48));
    t[0] = FE_LOW(t[0], over, FE_ALL(FE_FOLD256));
    t[1] = FE_HIGH(t[1], over, FE_ALL(FE_FOLD256));
    FE_CARRY(t[1], t[0])
    FE_CARRY(t[2], t[1])
    FE_CARRY(t[3], t[2])
    FE_CARRY(t[4], t[3])
#pragma GCC unroll 5
    for (int i = 0; i < FE_LIMBS; i++) r->v[i] = t[i];
}

FE_IFMA static void fe_mul(fe_num* r, const fe_num* a, const fe_num* b) {
    fe_vec t[2 * FE_LIMBS];
#pragma GCC unroll 10
    for (int i = 0; i < 2 * FE_LIMBS; i++) t[i] = FE_VEC_ZERO();
#pragma GCC unroll 5
    for (int i = 0; i < FE_LIMBS; i++)
#pragma GCC unroll 5
        for (int j = 0; j < FE_LIMBS; j++) {
            t[i + j] = FE_LOW(t[i + j], a->v[i], b->v[j]);
            t[i + j + 1] = FE_HIGH(t[i + j + 1], a->v[i], b->v[j]);
        }
    fe_reduce(r, t);
}

/* Doubles the column sums, not a limb: a doubled limb would need 53 bits. */
FE_IFMA static void fe_sqr(fe_num* r, const fe_num* a) {
    fe_vec t[2 * FE_LIMBS];
#pragma GCC unroll 10
    for (int i = 0; i < 2 * FE_LIMBS; i++) t[i] = FE_VEC_ZERO();
#pragma GCC unroll 5
    for (int i = 0; i < FE_LIMBS; i++)
#pragma GCC unroll 5
        for (int j = i + 1; j < FE_LIMBS; j++) {
            t[i + j] = FE_LOW(t[i + j], a->v[i], a->v[j]);
            t[i + j + 1] = FE_HIGH(t[i + j + 1], a->v[i], a->v[j]);
        }
#pragma GCC unroll 10
    for (int i = 1; i < 2 * FE_LIMBS; i++) t[i] = FE_VEC_ADD(t[i], t[i]);
#pragma GCC unroll 5
    for (int i = 0; i < FE_LIMBS; i++) {
        t[2 * i] = FE_LOW(t[2 * i], a->v[i], a->v[i]);
        t[2 * i + 1] = FE_HIGH(t[2 * i + 1], a->v[i], a->v[i]);
    }
    fe_reduce(r, t);
}

/* a * 2^k - b * 2^shift, for exponents up to 4. */
FE_IFMA_INLINE void fe_less(fe_num* r, const fe_num* a, int k, const fe_num* b, int shift) {
    for (int i = 0; i < FE_LIMBS; i++) {
        fe_vec positive = FE_VEC_LEFT(a->v[i], k);
        positive = FE_VEC_ADD(positive, FE_ALL(FE_P[i] << (shift + 2)));
        r->v[i] = FE_VEC_SUB(positive, FE_VEC_LEFT(b->v[i], shift));
    }
    fe_tidy(r);
}

FE_IFMA_INLINE void fe_sub(fe_num* r, const fe_num* a, const fe_num* b) {
    fe_less(r, a, 0, b, 0);
}

FE_IFMA_INLINE void fe_add(fe_num* r, const fe_num* a, const fe_num* b) {
    for (int i = 0; i < FE_LIMBS; i++) r->v[i] = FE_VEC_ADD(a->v[i], b->v[i]);
    fe_tidy(r);
}

/* Negates the lanes of the mask. */
FE_IFMA_INLINE void fe_negate(fe_num* r, fe_mask lanes) {
    fe_num negative;
    for (int i = 0; i < FE_LIMBS; i++)
        negative.v[i] = FE_VEC_SUB(FE_ALL(FE_P[i] << 2), r->v[i]);
    fe_tidy(&negative);
    for (int i = 0; i < FE_LIMBS; i++)
        r->v[i] = FE_VEC_SELECT(r->v[i], lanes, negative.v[i]);
}

FE_IFMA_INLINE void fe_set(fe_num* r, uint64_t value) {
    r->v[0] = FE_ALL(value);
    for (int i = 1; i < FE_LIMBS; i++) r->v[i] = FE_VEC_ZERO();
}

FE_IFMA static void fe_sqr_times(fe_num* r, const fe_num* a, int times) {
    fe_sqr(r, a);
    while (--times) fe_sqr(r, r);
}

/* a^(2^223 - 1), a^(2^22 - 1) and a^3: both exponents below begin with 223 ones. */
FE_IFMA static void fe_ones(fe_num* x223, fe_num* x22, fe_num* x2, const fe_num* a) {
    fe_num x3, x6, x11, x44, x88, t;
    fe_sqr(&t, a);
    fe_mul(x2, &t, a);
    fe_sqr(&t, x2);
    fe_mul(&x3, &t, a);
    fe_sqr_times(&t, &x3, 3);
    fe_mul(&x6, &t, &x3);
    fe_sqr_times(&t, &x6, 3);
    fe_mul(&t, &t, &x3);
    fe_sqr_times(&t, &t, 2);
    fe_mul(&x11, &t, x2);
    fe_sqr_times(&t, &x11, 11);
    fe_mul(x22, &t, &x11);
    fe_sqr_times(&t, x22, 22);
    fe_mul(&x44, &t, x22);
    fe_sqr_times(&t, &x44, 44);
    fe_mul(&x88, &t, &x44);
    fe_sqr_times(&t, &x88, 88);
    fe_mul(&t, &t, &x88);
    fe_sqr_times(&t, &t, 44);
    fe_mul(&t, &t, &x44);
    fe_sqr_times(&t, &t, 3);
    fe_mul(x223, &t, &x3);
}

/* a^((p + 1) / 4): a square root if one exists. */
FE_IFMA static void fe_root(fe_num* r, const fe_num* a) {
    fe_num x223, x22, x2;
    fe_ones(&x223, &x22, &x2, a);
    fe_sqr_times(&x223, &x223, 23);
    fe_mul(&x223, &x223, &x22);
    fe_sqr_times(&x223, &x223, 6);
    fe_mul(&x223, &x223, &x2);
    fe_sqr_times(r, &x223, 2);
}

/* a^(p - 2): the inverse of a, or 0 if a is 0. */
FE_IFMA static void fe_inverse(fe_num* r, const fe_num* a) {
    fe_num x223, x22, x2;
    fe_ones(&x223, &x22, &x2, a);
    fe_sqr_times(&x223, &x223, 23);
    fe_mul(&x223, &x223, &x22);
    fe_sqr_times(&x223, &x223, 5);
    fe_mul(&x223, &x223, a);
    fe_sqr_times(&x223, &x223, 3);
    fe_mul(&x223, &x223, &x2);
    fe_sqr_times(&x223, &x223, 2);
    fe_mul(r, &x223, a);
}

/* --- one lane, as 64-bit words, least significant first --- */

static inline void fe_limbs_of(uint64_t limbs[FE_LIMBS], const uint64_t words[4]) {
    limbs[0] = words[0] & FE_MASK52;
    limbs[1] = (words[0] >> 52 | words[1] << 12) & FE_MASK52;
    limbs[2] = (words[1] >> 40 | words[2] << 24) & FE_MASK52;
    limbs[3] = (words[2] >> 28 | words[3] << 36) & FE_MASK52;
    limbs[4] = words[3] >> 16;
}

FE_IFMA static void fe_put(fe_num* r, int lane, const uint64_t words[4]) {
    uint64_t limbs[FE_LIMBS];
    fe_limbs_of(limbs, words);
    for (int i = 0; i < FE_LIMBS; i++) ((fe_lane*)&r->v[i])[lane] = limbs[i];
}

/* Stores the reduced number of a lane in `words`. */
FE_IFMA static void fe_take(uint64_t words[4], const fe_num* a, int lane) {
    uint64_t l[FE_LIMBS];
    for (int i = 0; i < FE_LIMBS; i++) l[i] = ((const fe_lane*)&a->v[i])[lane];
    words[0] = l[0] | l[1] << 52;
    words[1] = l[1] >> 12 | l[2] << 40;
    words[2] = l[2] >> 24 | l[3] << 28;
    words[3] = l[3] >> 36 | l[4] << 16;
    uint64_t above = l[4] >> 48; /* bits above 2^256 */
    for (int round = 0; round < 3; round++) {
        /* Adding 2^256 - p carries exactly if the number is not below p. */
        unsigned __int128 sum = (unsigned __int128)words[0] + FE_FOLD256;
        uint64_t reduced[4] = {(uint64_t)sum};
        for (int i = 1; i < 4; i++) {
            sum = (unsigned __int128)words[i] + (uint64_t)(sum >> 64);
            reduced[i] = (uint64_t)sum;
        }
        if (above + (uint64_t)(sum >> 64) == 0) return;
        above = above + (uint64_t)(sum >> 64) - 1;
        memcpy(words, reduced, sizeof reduced);
    }
}
#endif
