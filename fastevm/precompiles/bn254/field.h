/* Arithmetic modulo the BN254 base prime p and in its quadratic extension, four limbs per element.
 *
 * Elements are in Montgomery form (x stands for x / 2^256) and always below p, so equality is
 * equality of limbs. Results may alias operands. The multiplication has two bodies, chosen at run
 * time: mulx with two carry chains where the processor has BMI2 and ADX, else 128-bit integers. */
#ifndef FASTEVM_BN254_FIELD_H
#define FASTEVM_BN254_FIELD_H

#include "fastevm/primitives/intrinsics.h"

#define FP_P0 UINT64_C(0x3c208c16d87cfd47)
#define FP_P1 UINT64_C(0x97816a916871ca8d)
#define FP_P2 UINT64_C(0xb85045b68181585d)
#define FP_P3 UINT64_C(0x30644e72e131a029)
#define FP_N0 UINT64_C(0x87d20782e4866389) /* -1 / p modulo 2^64 */

static const uint64_t fp_p[4] = {FP_P0, FP_P1, FP_P2, FP_P3};
static const uint64_t fp_n0 = FP_N0;

/* --- sums --- */

/* t in [0, 2p) into [0, p). A select, not a branch: which way it goes is random. */
FE_INLINE void fp_reduce_once(uint64_t* r, uint64_t t0, uint64_t t1, uint64_t t2, uint64_t t3) {
#if FE_X86_64
    uint64_t s0 = t0, s1 = t1, s2 = t2, s3 = t3;
    __asm__("subq %[p0], %[s0]\n\tsbbq %[p1], %[s1]\n\t"
            "sbbq %[p2], %[s2]\n\tsbbq %[p3], %[s3]\n\t"
            "cmovcq %[t0], %[s0]\n\tcmovcq %[t1], %[s1]\n\t"
            "cmovcq %[t2], %[s2]\n\tcmovcq %[t3], %[s3]"
            : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3)
            : [t0] "r"(t0), [t1] "r"(t1), [t2] "r"(t2), [t3] "r"(t3),
              [p0] "m"(fp_p[0]), [p1] "m"(fp_p[1]), [p2] "m"(fp_p[2]), [p3] "m"(fp_p[3])
            : "cc");
    r[0] = s0;
    r[1] = s1;
    r[2] = s2;
    r[3] = s3;
#else
    uint64_t t[4] = {t0, t1, t2, t3}, s[4];
    uint64_t keep = (uint64_t)0 - (uint64_t)fe_sub256(s, t, fp_p);
    for (int i = 0; i < 4; i++) r[i] = (t[i] & keep) | (s[i] & ~keep);
#endif
}

FE_INLINE void fp_add(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t t[4];
    fe_add256(t, a, b);
    fp_reduce_once(r, t[0], t[1], t[2], t[3]);
}

FE_INLINE void fp_sub(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t t[4], p[4];
    uint64_t wrapped = (uint64_t)0 - (uint64_t)fe_sub256(t, a, b);
    p[0] = FP_P0 & wrapped;
    p[1] = FP_P1 & wrapped;
    p[2] = FP_P2 & wrapped;
    p[3] = FP_P3 & wrapped;
    fe_add256(r, t, p);
}

/* --- products: eight limbs, and their Montgomery reduction --- */

FE_INLINE uint64_t fp_mul_add(uint64_t a, uint64_t b, uint64_t addend, uint64_t* carry) {
    fe_u128 t = (fe_u128)a * b + addend + *carry;
    *carry = (uint64_t)(t >> 64);
    return (uint64_t)t;
}

FE_INLINE void fp_wide_portable(uint64_t* t, const uint64_t* a, const uint64_t* b) {
    uint64_t carry = 0;
    t[0] = fp_mul_add(a[0], b[0], 0, &carry);
    t[1] = fp_mul_add(a[1], b[0], 0, &carry);
    t[2] = fp_mul_add(a[2], b[0], 0, &carry);
    t[3] = fp_mul_add(a[3], b[0], 0, &carry);
    t[4] = carry;
#pragma GCC unroll 3
    for (int i = 1; i < 4; i++) {
        carry = 0;
        t[i] = fp_mul_add(a[0], b[i], t[i], &carry);
        t[i + 1] = fp_mul_add(a[1], b[i], t[i + 1], &carry);
        t[i + 2] = fp_mul_add(a[2], b[i], t[i + 2], &carry);
        t[i + 3] = fp_mul_add(a[3], b[i], t[i + 3], &carry);
        t[i + 4] = carry;
    }
}

/* r = t / 2^256 modulo p, for t < 2^256 p. The low half is reduced by itself, to at most p, and
   then meets the high half: no carry ever leaves its four limbs. */
FE_INLINE void fp_redc_portable(uint64_t* r, const uint64_t* t) {
    uint64_t s[4] = {t[0], t[1], t[2], t[3]}, carry;
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        uint64_t m = s[0] * FP_N0;
        carry = 0;
        fp_mul_add(m, FP_P0, s[0], &carry);
        s[0] = fp_mul_add(m, FP_P1, s[1], &carry);
        s[1] = fp_mul_add(m, FP_P2, s[2], &carry);
        s[2] = fp_mul_add(m, FP_P3, s[3], &carry);
        s[3] = carry;
    }
    fe_add256(s, s, t + 4);
    fp_reduce_once(r, s[0], s[1], s[2], s[3]);
}

#if FE_X86_64
/* One row of a product: (t0 .. t3, top) += rdx * a, `top` being fresh; x and y are scratch. The low
   and the high halves of the partial products run down two independent carry chains. */
#define FP_ROW(a0, a1, a2, a3, t0, t1, t2, t3, top)                                                \
    "xorl %k[x], %k[x]\n\t"                                                                        \
    "mulxq " a0 ", %[x], %[y]\n\tadcxq %[x], " t0 "\n\tadoxq %[y], " t1 "\n\t"                     \
    "mulxq " a1 ", %[x], %[y]\n\tadcxq %[x], " t1 "\n\tadoxq %[y], " t2 "\n\t"                     \
    "mulxq " a2 ", %[x], %[y]\n\tadcxq %[x], " t2 "\n\tadoxq %[y], " t3 "\n\t"                     \
    "mulxq " a3 ", %[x], " top "\n\tadcxq %[x], " t3 "\n\t"                                        \
    "movl $0, %k[x]\n\tadcxq %[x], " top "\n\tadoxq %[x], " top "\n\t"

#define FP_MUL_ROW(b, t0, t1, t2, t3, top)                                                         \
    "movq " b ", %%rdx\n\t" FP_ROW("(%[a])", "8(%[a])", "16(%[a])", "24(%[a])", t0, t1, t2, t3, top)

FE_INLINE void fp_wide_adx(uint64_t* t, const uint64_t* a, const uint64_t* b) {
    uint64_t t0, t1, t2, t3, t4, t5, t6, t7, x, y;
    __asm__("movq (%[b]), %%rdx\n\t"
            "mulxq (%[a]), %[t0], %[t1]\n\t"
            "mulxq 8(%[a]), %[x], %[t2]\n\taddq %[x], %[t1]\n\t"
            "mulxq 16(%[a]), %[x], %[t3]\n\tadcq %[x], %[t2]\n\t"
            "mulxq 24(%[a]), %[x], %[t4]\n\tadcq %[x], %[t3]\n\tadcq $0, %[t4]\n\t"
            FP_MUL_ROW("8(%[b])", "%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t5]")
            FP_MUL_ROW("16(%[b])", "%[t2]", "%[t3]", "%[t4]", "%[t5]", "%[t6]")
            FP_MUL_ROW("24(%[b])", "%[t3]", "%[t4]", "%[t5]", "%[t6]", "%[t7]")
            : [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4),
              [t5] "=&r"(t5), [t6] "=&r"(t6), [t7] "=&r"(t7), [x] "=&r"(x), [y] "=&r"(y)
            : [a] "r"(a), [b] "r"(b), "m"(*(const uint64_t(*)[4])a), "m"(*(const uint64_t(*)[4])b)
            : "rdx", "cc");
    t[0] = t0;
    t[1] = t1;
    t[2] = t2;
    t[3] = t3;
    t[4] = t4;
    t[5] = t5;
    t[6] = t6;
    t[7] = t7;
}

/* The row's lowest limb becomes zero, so its register can hold the new top. */
#define FP_REDC_ROW(t0, t1, t2, t3)                                                                \
    "movq %[n], %%rdx\n\timulq " t0 ", %%rdx\n\t"                                                  \
    FP_ROW("%[p0]", "%[p1]", "%[p2]", "%[p3]", t0, t1, t2, t3, t0)

FE_INLINE void fp_redc_adx(uint64_t* r, const uint64_t* t) {
    uint64_t s0 = t[0], s1 = t[1], s2 = t[2], s3 = t[3], x, y;
    __asm__(FP_REDC_ROW("%[s0]", "%[s1]", "%[s2]", "%[s3]")
            FP_REDC_ROW("%[s1]", "%[s2]", "%[s3]", "%[s0]")
            FP_REDC_ROW("%[s2]", "%[s3]", "%[s0]", "%[s1]")
            FP_REDC_ROW("%[s3]", "%[s0]", "%[s1]", "%[s2]")
            "addq %[t4], %[s0]\n\tadcq %[t5], %[s1]\n\tadcq %[t6], %[s2]\n\tadcq %[t7], %[s3]"
            : [s0] "+&r"(s0), [s1] "+&r"(s1), [s2] "+&r"(s2), [s3] "+&r"(s3),
              [x] "=&r"(x), [y] "=&r"(y)
            : [t4] "rm"(t[4]), [t5] "rm"(t[5]), [t6] "rm"(t[6]), [t7] "rm"(t[7]), [n] "m"(fp_n0),
              [p0] "m"(fp_p[0]), [p1] "m"(fp_p[1]), [p2] "m"(fp_p[2]), [p3] "m"(fp_p[3])
            : "rdx", "cc");
    fp_reduce_once(r, s0, s1, s2, s3);
}
#endif

/* --- the choice between the two bodies --- */

static int fp_has_adx;

/* Ask the processor; also 0 when `allow` is 0, so that tests can walk both bodies. */
static int fp_select(int allow) {
#if FE_X86_64
    __builtin_cpu_init();
    fp_has_adx = allow && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("adx");
#else
    (void)allow;
#endif
    return fp_has_adx;
}

#if FE_X86_64
#define FP_CHOOSE(adx, portable) if (__builtin_expect(fp_has_adx, 1)) { adx; } else { portable; }
#else
#define FP_CHOOSE(adx, portable) { portable; }
#endif

/* --- products in the base field --- */

FE_INLINE void fp_mul(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t t[8];
    FP_CHOOSE(fp_wide_adx(t, a, b); fp_redc_adx(r, t),
              fp_wide_portable(t, a, b); fp_redc_portable(r, t))
}

/* --- products in Fp2 = Fp[u] / (u^2 + 1): the real part's limbs first --- */

/* t -= s over eight limbs; gives the borrow. */
FE_INLINE int fp_wide_sub(uint64_t* t, const uint64_t* s) {
    uint64_t borrowed[4] = {(uint64_t)fe_sub256(t, t, s), 0, 0, 0};
    int first = fe_sub256(t + 4, t + 4, s + 4);
    return first | fe_sub256(t + 4, t + 4, borrowed);
}

/* Karatsuba over unreduced products: three of them, but only two reductions. With sums below 2p
   every intermediate value stays below 4 p^2 < 2^256 p. */
#define FP2_MUL_BODY(wide, redc)                                                                   \
    fe_add256(x, a, a + 4);                                                                        \
    fe_add256(y, b, b + 4);                                                                        \
    wide(cross, x, y);                                                                             \
    wide(real, a, b);                                                                              \
    wide(imag, a + 4, b + 4);                                                                      \
    fp_wide_sub(cross, real);                                                                      \
    fp_wide_sub(cross, imag);                                                                      \
    if (fp_wide_sub(real, imag)) fe_add256(real + 4, real + 4, fp_p);                              \
    redc(r, real);                                                                                 \
    redc(r + 4, cross);

FE_INLINE void fp2_mul(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t x[4], y[4], cross[8], real[8], imag[8];
    FP_CHOOSE(FP2_MUL_BODY(fp_wide_adx, fp_redc_adx),
              FP2_MUL_BODY(fp_wide_portable, fp_redc_portable))
}

/* (a + b u)^2 = (a + b)(a - b) + 2ab u */
#define FP2_SQR_BODY(wide, redc)                                                                   \
    fe_add256(sum, a, a + 4);                                                                      \
    fp_sub(difference, a, a + 4);                                                                  \
    fe_add256(twice, a, a);                                                                        \
    wide(imag, twice, a + 4);                                                                      \
    wide(real, sum, difference);                                                                   \
    redc(r, real);                                                                                 \
    redc(r + 4, imag);

FE_INLINE void fp2_sqr(uint64_t* r, const uint64_t* a) {
    uint64_t sum[4], difference[4], twice[4], real[8], imag[8];
    FP_CHOOSE(FP2_SQR_BODY(fp_wide_adx, fp_redc_adx),
              FP2_SQR_BODY(fp_wide_portable, fp_redc_portable))
}

#endif
