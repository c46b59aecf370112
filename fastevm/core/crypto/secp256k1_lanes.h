/* Recovers eight public keys in parallel: Q = (s R - z G) / r on secp256k1, one signature per
   lane. All lanes take the same steps: both scalars are split into halves (GLV) with signed odd
   digits, so no window is zero. The addition formulas are incomplete: if they add a point to
   itself or to its negative, Z becomes 0 and stays 0. The caller then recovers that lane with
   libsecp256k1. */
#ifndef FASTEVM_SECP256K1_LANES_H
#define FASTEVM_SECP256K1_LANES_H

#include "fastevm/core/crypto/secp256k1_many.h"

#if defined(__x86_64__) || defined(FE_PORTABLE_VECTORS)
#include "fastevm/core/crypto/secp256k1_field.h"
#include "fastevm/core/crypto/secp256k1_scalars.h"

#define FE_R_BITS 4 /* window width for R, whose multiples are computed each time */
#define FE_R_POINTS 8
#define FE_G_BITS 8 /* window width for G, whose multiples are computed once */
#define FE_G_POINTS 128
#define FE_DOUBLINGS 128
#define FE_R_WINDOWS (FE_DOUBLINGS / FE_R_BITS)

/* A cube root of 1: (beta x, y) is lambda times the point (x, y). */
static const uint64_t FE_BETA[4] = {0xC1396C28719501EEULL, 0x9CF0497512F58995ULL,
                                    0x6E64479EAC3434E9ULL, 0x7AE96A2B657C0710ULL};

typedef struct {
    fe_num x, y;
} fe_affine;

typedef struct {
    fe_num x, y, z;
} fe_point;

/* An odd multiple of G in limbs: its x, the x of lambda times the multiple, and y. */
typedef struct {
    uint64_t limb[3][FE_LIMBS];
    uint64_t unused;
} fe_multiple;

static fe_multiple fe_g_multiples[FE_G_POINTS];

FE_IFMA static void fe_double(fe_point* r, const fe_point* p) {
    fe_num a, b, c, t, e, f;
    fe_sqr(&a, &p->x);
    fe_sqr(&b, &p->y);
    fe_sqr(&c, &b);
    fe_mul(&t, &p->x, &b);
    fe_mul(&f, &p->y, &p->z);
    fe_add(&r->z, &f, &f);
    for (int i = 0; i < FE_LIMBS; i++)
        e.v[i] = FE_VEC_ADD(a.v[i], FE_VEC_LEFT(a.v[i], 1));
    fe_tidy(&e);
    fe_sqr(&f, &e);
    fe_less(&r->x, &f, 0, &t, 3);
    fe_less(&t, &t, 2, &r->x, 0);
    fe_mul(&f, &e, &t);
    fe_less(&r->y, &f, 0, &c, 3);
}

/* r = p + q. `scale` is 1 / Z of q (NULL: 1). `ratio` receives Z of r divided by Z of p. */
FE_IFMA static void fe_mixed(fe_point* r, const fe_point* p, const fe_affine* q,
                             const fe_num* scale, fe_num* ratio) {
    fe_num z, zz, u, s, h, hh, d, t;
    if (scale)
        fe_mul(&z, &p->z, scale);
    else
        z = p->z;
    fe_sqr(&zz, &z);
    fe_mul(&u, &q->x, &zz);
    fe_mul(&zz, &zz, &z);
    fe_mul(&s, &q->y, &zz);
    fe_sub(&h, &u, &p->x);
    fe_sub(&d, &s, &p->y);
    fe_mul(&r->z, &p->z, &h);
    fe_sqr(&hh, &h);
    fe_mul(&u, &p->x, &hh);
    fe_mul(&hh, &hh, &h);
    fe_mul(&s, &p->y, &hh);
    fe_sqr(&t, &d);
    fe_sub(&t, &t, &hh);
    fe_less(&r->x, &t, 0, &u, 1);
    fe_sub(&u, &u, &r->x);
    fe_mul(&t, &d, &u);
    fe_sub(&r->y, &t, &s);
    *ratio = h;
}

/* Computes the odd multiples of a point. All have the same Z, which is stored in `z`. */
FE_IFMA static void fe_multiples(fe_affine* out, fe_num* z, const fe_affine* point) {
    fe_num ratios[FE_R_POINTS], square, scale;
    fe_point twice, next;
    fe_affine step;
    next.x = point->x;
    next.y = point->y;
    fe_set(&next.z, 1);
    fe_double(&twice, &next);
    /* On the isomorphic curve where this Z is 1, the doubled point is affine. */
    step.x = twice.x;
    step.y = twice.y;
    fe_sqr(&square, &twice.z);
    fe_mul(&next.x, &point->x, &square);
    fe_mul(&square, &square, &twice.z);
    fe_mul(&next.y, &point->y, &square);
    for (int i = 0; i < FE_R_POINTS; i++) {
        if (i) fe_mixed(&next, &next, &step, NULL, &ratios[i]);
        out[i].x = next.x;
        out[i].y = next.y;
    }
    fe_mul(z, &next.z, &twice.z);
    fe_set(&scale, 1);
    for (int i = FE_R_POINTS - 2; i >= 0; i--) {
        fe_mul(&scale, &scale, &ratios[i + 1]);
        fe_sqr(&square, &scale);
        fe_mul(&out[i].x, &out[i].x, &square);
        fe_mul(&square, &square, &scale);
        fe_mul(&out[i].y, &out[i].y, &square);
    }
}

/* Selects the multiple of R for the digit of each lane. */
FE_IFMA static void fe_pick(fe_num* r, const fe_affine* multiples, int y, fe_vec index) {
    for (int i = 0; i < FE_LIMBS; i++) r->v[i] = FE_VEC_ZERO();
    for (int e = 0; e < FE_R_POINTS; e++) {
        const fe_num* from = y ? &multiples[e].y : &multiples[e].x;
        fe_mask chosen = FE_VEC_EQUAL(index, FE_ALL(e));
        for (int i = 0; i < FE_LIMBS; i++)
            r->v[i] = FE_VEC_SELECT(r->v[i], chosen, from->v[i]);
    }
}

FE_IFMA static void fe_fetch(fe_num* r, int part, fe_vec index) {
    const long long* from = (const long long*)fe_g_multiples[0].limb[part];
    fe_vec offset = FE_VEC_LEFT(index, 4); /* offset of a multiple in words */
    for (int i = 0; i < FE_LIMBS; i++) r->v[i] = FE_VEC_GATHER(offset, from + i);
}

/* Stores the index of the multiple for a window's digit in each lane, and returns the mask of
   negative digits. */
FE_IFMA static fe_mask fe_digits(fe_vec* index, const fe_half* halves, int at, int bits,
                                  int last) {
    long long found[FE_LANES];
    unsigned negative = 0;
    for (int lane = 0; lane < FE_LANES; lane++) {
        int digit = fe_digit(&halves[lane], at, bits, last);
        negative |= (unsigned)(digit < 0) << lane;
        found[lane] = ((digit < 0 ? -digit : digit) - 1) / 2;
    }
    *index = FE_VEC_LOAD(found);
    return (fe_mask)negative;
}

/* Computes R from its x; returns the lanes in which such a point exists. */
FE_IFMA static fe_mask fe_lift(fe_affine* point, const fe_recovery* jobs) {
    fe_num cube, seven, check;
    unsigned valid = 0, odd = 0;
    for (int lane = 0; lane < FE_LANES; lane++) fe_put(&point->x, lane, jobs[lane].r);
    fe_sqr(&cube, &point->x);
    fe_mul(&cube, &cube, &point->x);
    fe_set(&seven, 7);
    fe_add(&cube, &cube, &seven);
    fe_root(&point->y, &cube);
    fe_sqr(&check, &point->y);
    fe_sub(&check, &check, &cube);
    for (int lane = 0; lane < FE_LANES; lane++) {
        uint64_t rest[4], y[4];
        fe_take(rest, &check, lane);
        fe_take(y, &point->y, lane);
        valid |= (unsigned)((rest[0] | rest[1] | rest[2] | rest[3]) == 0) << lane;
        odd |= (unsigned)((y[0] & 1) != (uint64_t)jobs[lane].y_parity) << lane;
    }
    fe_negate(&point->y, (fe_mask)odd);
    return (fe_mask)valid;
}

typedef struct {
    fe_half g[2][FE_LANES], r[2][FE_LANES]; /* both halves of each scalar */
} fe_halves;

/* Computes -z / r and s / r of all lanes with one inversion. */
static void fe_scalars_of(fe_halves* out, const fe_recovery* jobs) {
    fe_scalar products[FE_LANES], inverse, r, one, u;
    memcpy(products[0].d, jobs[0].r, sizeof r.d);
    for (int lane = 1; lane < FE_LANES; lane++) {
        memcpy(r.d, jobs[lane].r, sizeof r.d);
        fe_scalar_mul(&products[lane], &products[lane - 1], &r);
    }
    fe_scalar_inverse(&inverse, &products[FE_LANES - 1]);
    for (int lane = FE_LANES - 1; lane >= 0; lane--) {
        one = inverse;
        if (lane) {
            fe_scalar_mul(&one, &inverse, &products[lane - 1]);
            memcpy(r.d, jobs[lane].r, sizeof r.d);
            fe_scalar_mul(&inverse, &inverse, &r);
        }
        memcpy(u.d, jobs[lane].s, sizeof u.d);
        fe_scalar_mul(&u, &u, &one);
        fe_split(&u, &out->r[0][lane], &out->r[1][lane]);
        memcpy(u.d, jobs[lane].z, sizeof u.d);
        fe_scalar_mul(&u, &u, &one);
        fe_scalar_negate(&u);
        fe_split(&u, &out->g[0][lane], &out->g[1][lane]);
    }
}

/* sum += the window's multiples of R and of lambda R. */
FE_IFMA static void fe_add_r(fe_point* sum, const fe_affine* multiples, const fe_num* lambda_x,
                             const fe_halves* halves, int at) {
    fe_num ratio;
    fe_affine term;
    fe_vec index;
    for (int half = 0; half < 2; half++) {
        fe_mask negative =
            fe_digits(&index, halves->r[half], at, FE_R_BITS, at == FE_R_WINDOWS);
        fe_pick(&term.x, multiples, 0, index);
        fe_pick(&term.y, multiples, 1, index);
        if (half) fe_mul(&term.x, &term.x, lambda_x);
        fe_negate(&term.y, negative);
        if (at == FE_R_WINDOWS && half == 0) {
            sum->x = term.x;
            sum->y = term.y;
            fe_set(&sum->z, 1);
        } else {
            fe_mixed(sum, sum, &term, NULL, &ratio);
        }
    }
}

/* sum += the window's multiples of G and of lambda G, on a curve where their Z is 1 / scale. */
FE_IFMA static void fe_add_g(fe_point* sum, const fe_num* scale, const fe_halves* halves, int at) {
    fe_num ratio;
    fe_affine term;
    fe_vec index;
    for (int half = 0; half < 2; half++) {
        fe_mask negative = fe_digits(&index, halves->g[half], at, FE_G_BITS,
                                      at == FE_DOUBLINGS / FE_G_BITS);
        fe_fetch(&term.x, half, index);
        fe_fetch(&term.y, 2, index);
        fe_negate(&term.y, negative);
        fe_mixed(sum, sum, &term, scale, &ratio);
    }
}

/* Recovers eight keys. For lanes without `found`, the caller must use complete addition formulas.
*/
FE_IFMA static void fe_recover_eight(fe_recovery* jobs) {
    fe_affine point, multiples[FE_R_POINTS];
    fe_halves halves;
    fe_num scale, beta, inverse, square;
    fe_point sum;
    fe_mask valid = fe_lift(&point, jobs);
    fe_scalars_of(&halves, jobs);
    fe_multiples(multiples, &scale, &point);
    for (int lane = 0; lane < FE_LANES; lane++) fe_put(&beta, lane, FE_BETA);
    for (int at = FE_R_WINDOWS; at >= 0; at--) {
        for (int i = 0; i < FE_R_BITS && at < FE_R_WINDOWS; i++) fe_double(&sum, &sum);
        fe_add_r(&sum, multiples, &beta, &halves, at);
        if (at * FE_R_BITS % FE_G_BITS == 0)
            fe_add_g(&sum, &scale, &halves, at * FE_R_BITS / FE_G_BITS);
    }
    fe_mul(&sum.z, &sum.z, &scale);
    fe_inverse(&inverse, &sum.z);
    fe_sqr(&square, &inverse);
    fe_mul(&sum.x, &sum.x, &square);
    fe_mul(&square, &square, &inverse);
    fe_mul(&sum.y, &sum.y, &square);
    for (int lane = 0; lane < FE_LANES; lane++) {
        uint64_t z[4];
        fe_take(z, &sum.z, lane);
        jobs[lane].found = (valid >> lane & 1) && (z[0] | z[1] | z[2] | z[3]) != 0;
        fe_take(jobs[lane].key, &sum.x, lane);
        fe_take(jobs[lane].key + 4, &sum.y, lane);
    }
}

/* Stores (2 number + 1) G, given x and y. */
FE_IFMA static void fe_keep_multiple(int number, const uint64_t x[4], const uint64_t y[4]) {
    fe_multiple* to = &fe_g_multiples[number];
    fe_num beta, product;
    uint64_t lambda_x[4];
    fe_set(&product, 0);
    fe_set(&beta, 0);
    fe_put(&beta, 0, FE_BETA);
    fe_put(&product, 0, x);
    fe_mul(&product, &product, &beta);
    fe_take(lambda_x, &product, 0);
    fe_limbs_of(to->limb[0], x);
    fe_limbs_of(to->limb[1], lambda_x);
    fe_limbs_of(to->limb[2], y);
}

/* Whether this processor supports the instructions. */
#if defined(FE_PORTABLE_VECTORS)
static int fe_has_lanes(void) { return 1; }
#else
static int fe_has_lanes(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512ifma");
}
#endif
#else
static int fe_has_lanes(void) { return 0; }
static void fe_keep_multiple(int number, const uint64_t x[4], const uint64_t y[4]) {}
static void fe_recover_eight(fe_recovery* jobs) {}
#endif
#endif
