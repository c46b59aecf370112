/* Quotients modulo an odd number below 2^255: the binary Euclidean algorithm on their ends.
 *
 * Pornin, "Optimized Binary GCD for Modular Inversion". The next steps on numbers a and b depend
 * only on their lowest bits and, almost, on their highest bits. So steps run on approximations in
 * single registers and are recorded as a matrix, which is then applied to the whole numbers, 62
 * steps at a time. A wrong guess from the highest bits makes a number negative,
 * which is corrected when the matrix is applied: the result stays exact but takes more steps.
 * Time depends on the operand. */
#ifndef FASTEVM_PRECOMPILES_QUOTIENT_H
#define FASTEVM_PRECOMPILES_QUOTIENT_H

#include "fastevm/core/primitives/intrinsics.h"

#define FE_TURNS 31 /* steps per matrix: its entries are at most 2^31, so that two fit a register */

typedef __int128 fe_i128;

/* The effect of n steps on (a, b), multiplied by 2^n: (f0 a + g0 b, f1 a + g1 b). */
typedef struct {
    int64_t f0, g0, f1, g1;
} fe_turns;

/* Both ends of two numbers: 64 bits each, the high ends at the same bit position. */
typedef struct {
    uint64_t a_low, a_high, b_low, b_high;
} fe_ends;

/* 31 steps: halves a if it is even, else a = |a - b| and b = min(a, b). The
   coefficients of a share a register as f0 + 2^32 g0; those of b share another. */
FE_INLINE void fe_turn(fe_turns* m, uint64_t* pa, uint64_t* pb) {
    const uint64_t bias = UINT64_C(0x7fffffff7fffffff);
    uint64_t a = *pa, b = *pb, of_a = 1, of_b = UINT64_C(1) << 32;
    int left = FE_TURNS, zeros = fe_ctz64(a | (UINT64_C(1) << FE_TURNS));
    for (;;) {
        a >>= zeros;
        of_b <<= zeros;
        left -= zeros;
        if (left == 0) break;
        uint64_t difference = a - b, of_difference = of_a - of_b;
        uint64_t less = (uint64_t)0 - (uint64_t)(a < b);
        zeros = fe_ctz64(difference | (UINT64_C(1) << left));
        __asm__("" : "+r"(less)); /* no branch, which would be unpredictable */
        b += difference & less;
        a = (difference ^ less) - less;
        of_b += of_difference & less;
        of_a = (of_difference ^ less) - less;
    }
    *pa = a;
    *pb = b;
    of_a += bias;
    of_b += bias;
    m->f0 = (int64_t)(of_a & 0xffffffff) - 0x7fffffff;
    m->g0 = (int64_t)(of_a >> 32) - 0x7fffffff;
    m->f1 = (int64_t)(of_b & 0xffffffff) - 0x7fffffff;
    m->g1 = (int64_t)(of_b >> 32) - 0x7fffffff;
}

/* 31 steps on the ends; updates them and adjusts signs so that nothing is negative. */
FE_INLINE void fe_turn_ends(fe_turns* m, fe_ends* e) {
    const uint64_t low = (UINT64_C(1) << FE_TURNS) - 1;
    int spare = fe_clz64(e->a_high | e->b_high | 1);
    uint64_t a = ((e->a_high << spare) & ~low) | (e->a_low & low);
    uint64_t b = ((e->b_high << spare) & ~low) | (e->b_low & low);
    fe_turn(m, &a, &b);
    fe_i128 high_a = (fe_i128)m->f0 * e->a_high + (fe_i128)m->g0 * e->b_high;
    fe_i128 high_b = (fe_i128)m->f1 * e->a_high + (fe_i128)m->g1 * e->b_high;
    uint64_t low_a = (uint64_t)m->f0 * e->a_low + (uint64_t)m->g0 * e->b_low;
    uint64_t low_b = (uint64_t)m->f1 * e->a_low + (uint64_t)m->g1 * e->b_low;
    int64_t s = (int64_t)(high_a >> 127), t = (int64_t)(high_b >> 127);
    m->f0 = (m->f0 ^ s) - s;
    m->g0 = (m->g0 ^ s) - s;
    m->f1 = (m->f1 ^ t) - t;
    m->g1 = (m->g1 ^ t) - t;
    e->a_high = (uint64_t)(((high_a ^ s) - s) >> FE_TURNS);
    e->b_high = (uint64_t)(((high_b ^ t) - t) >> FE_TURNS);
    e->a_low = ((low_a ^ (uint64_t)s) - (uint64_t)s) >> FE_TURNS;
    e->b_low = ((low_b ^ (uint64_t)t) - (uint64_t)t) >> FE_TURNS;
}

/* 62 steps on numbers of `limb` + 1 limbs; exact if they have one limb. */
FE_INLINE void fe_turn_twice(fe_turns* m, const uint64_t* a, const uint64_t* b, int limb) {
    fe_turns first, second;
    if (limb == 0) {
        uint64_t x = a[0], y = b[0];
        fe_turn(&first, &x, &y);
        fe_turn(&second, &x, &y);
    } else {
        int spare = fe_clz64(a[limb] | b[limb]);
        fe_ends e = {a[0], a[limb] << spare, b[0], b[limb] << spare};
        e.a_high |= a[limb - 1] >> 1 >> (63 - spare);
        e.b_high |= b[limb - 1] >> 1 >> (63 - spare);
        fe_turn_ends(&first, &e);
        fe_turn_ends(&second, &e);
    }
    m->f0 = second.f0 * first.f0 + second.g0 * first.f1;
    m->g0 = second.f0 * first.g0 + second.g0 * first.g1;
    m->f1 = second.f1 * first.f0 + second.g1 * first.f1;
    m->g1 = second.f1 * first.g0 + second.g1 * first.g1;
}

FE_INLINE uint64_t fe_shifted(uint64_t low, uint64_t high) {
    return (low >> 2 * FE_TURNS) | (high << (64 - 2 * FE_TURNS));
}

/* r = |fa + gb| / 2^62, an integer; negates f and g if fa + gb is negative. */
FE_INLINE void fe_apply(uint64_t* r, const uint64_t* a, const uint64_t* b, int64_t* f, int64_t* g) {
    uint64_t t[5];
    fe_i128 sum = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        sum += (fe_i128)*f * a[i] + (fe_i128)*g * b[i];
        t[i] = (uint64_t)sum;
        sum >>= 64;
    }
    t[4] = (uint64_t)sum;
    int64_t sign = (int64_t)t[4] >> 63;
    uint64_t carry = (uint64_t)-sign;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = (fe_shifted(t[i], t[i + 1]) ^ (uint64_t)sign) + carry;
        carry = r[i] < carry;
    }
    *f = (*f ^ sign) - sign;
    *g = (*g ^ sign) - sign;
}

/* An odd modulus below 2^255. */
typedef struct {
    uint64_t p[4];
    uint64_t n0; /* -1 / p modulo 2^64 */
} fe_odd_modulus;

/* r = (fa + gb) / 2^62 modulo p, for a and b below p: adds a multiple of p to make it an integer.
   */
FE_INLINE void fe_apply_modulo(
    uint64_t* r, const uint64_t* a, const uint64_t* b, int64_t f, int64_t g,
    const fe_odd_modulus* modulus) {
    const uint64_t low = (UINT64_C(1) << 2 * FE_TURNS) - 1;
    uint64_t k = ((a[0] * (uint64_t)f + b[0] * (uint64_t)g) * modulus->n0) & low, t[5], s[4];
    fe_i128 sum = 0;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        sum += (fe_i128)f * a[i] + (fe_i128)g * b[i] + (fe_i128)((fe_u128)k * modulus->p[i]);
        t[i] = (uint64_t)sum;
        sum >>= 64;
    }
    t[4] = (uint64_t)sum;
    uint64_t negative = (uint64_t)((int64_t)t[4] >> 63);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        s[i] = modulus->p[i] & negative;
        t[i] = fe_shifted(t[i], t[i + 1]);
    }
    fe_add256(t, t, s);
    uint64_t keep = (uint64_t)0 - (uint64_t)fe_sub256(s, t, modulus->p);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) r[i] = (t[i] & keep) | (s[i] & ~keep);
}

/* r = c / x modulo p, for x and c below p; 0 if x is 0. Returns whether x and p are
   coprime; otherwise r is undefined. */
FE_INLINE int fe_divide_modulo(
    uint64_t* r, const uint64_t* c, const uint64_t* x, const fe_odd_modulus* modulus) {
    uint64_t a[4], b[4], u[4], v[4] = {0, 0, 0, 0}, t[4];
    fe_turns m;
    int limb = 3;
    fe_copy32(a, x);
    fe_copy32(b, modulus->p);
    fe_copy32(u, c);
    /* a = ux / c and b = vx / c modulo p; at the end a is 0 and b is the greatest common divisor.
       */
    while (a[0] | a[1] | a[2] | a[3]) {
        while (limb > 0 && (a[limb] | b[limb]) == 0) limb--;
        fe_turn_twice(&m, a, b, limb);
        fe_apply(t, a, b, &m.f0, &m.g0);
        fe_apply(b, a, b, &m.f1, &m.g1);
        fe_copy32(a, t);
        fe_apply_modulo(t, u, v, m.f0, m.g0, modulus);
        fe_apply_modulo(v, u, v, m.f1, m.g1, modulus);
        fe_copy32(u, t);
    }
    fe_copy32(r, v);
    return b[0] == 1 && (b[1] | b[2] | b[3]) == 0;
}

#endif
