/* Arithmetic modulo the BN254 base prime p and in its quadratic extension, four limbs per element.
 *
 * Elements are in Montgomery form (x stands for x / 2^256) and always below p, so equal
 * elements have equal limbs. Results may alias operands. The multiplication has two bodies, chosen
 * at run time: mulx with two carry chains if the processor has BMI2 and ADX, else 128-bit
 * integers. */
#ifndef FASTEVM_BN254_FIELD_H
#define FASTEVM_BN254_FIELD_H

#include "fastevm/core/precompiles/quotient.h"

#define FP_P0 UINT64_C(0x3c208c16d87cfd47)
#define FP_P1 UINT64_C(0x97816a916871ca8d)
#define FP_P2 UINT64_C(0xb85045b68181585d)
#define FP_P3 UINT64_C(0x30644e72e131a029)
#define FP_N0 UINT64_C(0x87d20782e4866389) /* -1 / p modulo 2^64 */

static const uint64_t fp_p[4] = {FP_P0, FP_P1, FP_P2, FP_P3};
static const uint64_t fp_n0 = FP_N0;
/* (p FP_N0 + 1) / 2^64: the value of a lowest limb of 1 moved up one limb, modulo p. */
static const uint64_t fp_q[4] = {
    UINT64_C(0x327d7c1b18f7bd41), UINT64_C(0xdb8ed52f824ed32f),
    UINT64_C(0x29b67b05eb29a6a1), UINT64_C(0x19ac99126b459dda),
};

/* --- sums --- */

/* Reduces t from [0, 2p) to [0, p). Uses a select because a branch would be unpredictable. */
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

/* r = a / 2: of a or a + p, whichever is even. */
FE_INLINE void fp_half(uint64_t* r, const uint64_t* a) {
    uint64_t odd = (uint64_t)0 - (a[0] & 1);
    uint64_t p[4] = {FP_P0 & odd, FP_P1 & odd, FP_P2 & odd, FP_P3 & odd};
    fe_add256(p, p, a);
    r[0] = (p[0] >> 1) | (p[1] << 63);
    r[1] = (p[1] >> 1) | (p[2] << 63);
    r[2] = (p[2] >> 1) | (p[3] << 63);
    r[3] = p[3] >> 1;
}

/* --- products and sums of products, portable: eight limbs, and their reduction --- */

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

/* t += s over eight limbs, for sums that do not overflow. */
FE_INLINE void fp_wide_add(uint64_t* t, const uint64_t* s) {
    uint64_t carried[4] = {(uint64_t)fe_add256(t, t, s), 0, 0, 0};
    fe_add256(t + 4, t + 4, s + 4);
    fe_add256(t + 4, t + 4, carried);
}

/* r = t / 2^256 modulo p, for t < 2^257 p. The low half is reduced alone, to at most p, and
   then added to the high half: no carry leaves four limbs. */
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
    fp_reduce_once(s, s[0], s[1], s[2], s[3]);
    fp_reduce_once(r, s[0], s[1], s[2], s[3]);
}

FE_INLINE void fp_mul_portable(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t t[8];
    fp_wide_portable(t, a, b);
    fp_redc_portable(r, t);
}

FE_INLINE void fp_dot2_portable(
    uint64_t* r, const uint64_t* a, const uint64_t* b, const uint64_t* c, const uint64_t* d) {
    uint64_t t[8], s[8];
    fp_wide_portable(t, a, b);
    fp_wide_portable(s, c, d);
    fp_wide_add(t, s);
    fp_redc_portable(r, t);
}

#if FE_X86_64
/* The code below alternates summing and reducing products, one limb of the left factors at a time,
   in five registers t0 .. t4 whose roles rotate. x and y are scratch. The low and the high halves
   of the partial products use two independent carry chains. */
#define FP_HALVES(b0, b1, b2, t0, t1, t2, t3)                                                      \
    "xorl %k[x], %k[x]\n\t"                                                                        \
    "mulxq " b0 ", %[x], %[y]\n\tadcxq %[x], " t0 "\n\tadoxq %[y], " t1 "\n\t"                     \
    "mulxq " b1 ", %[x], %[y]\n\tadcxq %[x], " t1 "\n\tadoxq %[y], " t2 "\n\t"                     \
    "mulxq " b2 ", %[x], %[y]\n\tadcxq %[x], " t2 "\n\tadoxq %[y], " t3 "\n\t"
#define FP_TOP(b3, t3, t4)                                                                         \
    "mulxq " b3 ", %[x], %[y]\n\tadcxq %[x], " t3 "\n\tadoxq %[y], " t4 "\n\t"                     \
    "movl $0, %k[x]\n\tadcxq %[x], " t4 "\n\t"

/* (t0 .. t4) += limb * b, for b in four words at the offset `at` from a register. */
#define FP_ROW(limb, at, b, t0, t1, t2, t3, t4)                                                    \
    "movq " limb ", %%rdx\n\t"                                                                     \
    FP_HALVES(at "(" b ")", at "+8(" b ")", at "+16(" b ")", t0, t1, t2, t3)                       \
    FP_TOP(at "+24(" b ")", t3, t4)

/* Like FP_ROW, but initialises t0 .. t4. */
#define FP_FIRST(limb, at, b)                                                                      \
    "movq " limb ", %%rdx\n\t"                                                                     \
    "mulxq " at "(" b "), %[t0], %[t1]\n\t"                                                        \
    "mulxq " at "+8(" b "), %[x], %[t2]\n\taddq %[x], %[t1]\n\t"                                   \
    "mulxq " at "+16(" b "), %[x], %[t3]\n\tadcq %[x], %[t2]\n\t"                                  \
    "mulxq " at "+24(" b "), %[x], %[t4]\n\tadcq %[x], %[t3]\n\tadcq $0, %[t4]\n\t"

/* (t1 .. t4, t0) = (t0 .. t4) / 2^64: q 2^64 - 1 is a multiple of p, so adding it t0 times clears
   t0. */
#define FP_FOLD(t0, t1, t2, t3, t4)                                                                \
    "movq " t0 ", %%rdx\n\t" FP_HALVES("%[q0]", "%[q1]", "%[q2]", t1, t2, t3, t4)                  \
    "mulxq %[q3], %[x], " t0 "\n\tadcxq %[x], " t4 "\n\t"                                          \
    "movl $0, %k[x]\n\tadcxq %[x], " t0 "\n\tadoxq %[x], " t0 "\n\t"

/* Like FP_FOLD with p instead of q: the result is smaller, and t0 is cleared too. */
#define FP_REDUCE(t0, t1, t2, t3, t4)                                                              \
    "movq %[n], %%rdx\n\timulq " t0 ", %%rdx\n\t"                                                  \
    FP_HALVES("%[p0]", "%[p1]", "%[p2]", t0, t1, t2, t3) FP_TOP("%[p3]", t3, t4)

#define FP_SCRATCH                                                                                 \
    [t0] "=&r"(t0), [t1] "=&r"(t1), [t2] "=&r"(t2), [t3] "=&r"(t3), [t4] "=&r"(t4),                \
    [x] "=&r"(x), [y] "=&r"(y)
#define FP_CONSTANTS                                                                               \
    [n] "m"(fp_n0), [p0] "m"(fp_p[0]), [p1] "m"(fp_p[1]), [p2] "m"(fp_p[2]), [p3] "m"(fp_p[3]),    \
    [q0] "m"(fp_q[0]), [q1] "m"(fp_q[1]), [q2] "m"(fp_q[2]), [q3] "m"(fp_q[3])
#define FP_READS(a) "m"(*(const uint64_t(*)[4])(a))

/* q < 0.54 p < 0.54 * 2^62, so five limbs hold every sum below. After three folds and a
   reduction, a product is below 1.8 p and a sum of two products is below 2 p. */
FE_INLINE void fp_mul_adx(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t t0, t1, t2, t3, t4, x, y;
    __asm__(FP_FIRST("(%[a])", "", "%[b]")
            FP_FOLD("%[t0]", "%[t1]", "%[t2]", "%[t3]", "%[t4]")
            FP_ROW("8(%[a])", "", "%[b]", "%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t0]")
            FP_FOLD("%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t0]")
            FP_ROW("16(%[a])", "", "%[b]", "%[t2]", "%[t3]", "%[t4]", "%[t0]", "%[t1]")
            FP_FOLD("%[t2]", "%[t3]", "%[t4]", "%[t0]", "%[t1]")
            FP_ROW("24(%[a])", "", "%[b]", "%[t3]", "%[t4]", "%[t0]", "%[t1]", "%[t2]")
            FP_REDUCE("%[t3]", "%[t4]", "%[t0]", "%[t1]", "%[t2]")
            : FP_SCRATCH
            : [a] "r"(a), [b] "r"(b), FP_READS(a), FP_READS(b), FP_CONSTANTS
            : "rdx", "cc");
    fp_reduce_once(r, t4, t0, t1, t2);
}

#define FP_ROWS2(at, t0, t1, t2, t3, t4)                                                           \
    FP_ROW(at "(%[a])", "", "%[b]", t0, t1, t2, t3, t4)                                            \
    FP_ROW(at "(%[c])", "", "%[d]", t0, t1, t2, t3, t4)

FE_INLINE void fp_dot2_adx(
    uint64_t* r, const uint64_t* a, const uint64_t* b, const uint64_t* c, const uint64_t* d) {
    uint64_t t0, t1, t2, t3, t4, x, y;
    __asm__(FP_FIRST("(%[a])", "", "%[b]")
            FP_ROW("(%[c])", "", "%[d]", "%[t0]", "%[t1]", "%[t2]", "%[t3]", "%[t4]")
            FP_FOLD("%[t0]", "%[t1]", "%[t2]", "%[t3]", "%[t4]")
            FP_ROWS2("8", "%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t0]")
            FP_FOLD("%[t1]", "%[t2]", "%[t3]", "%[t4]", "%[t0]")
            FP_ROWS2("16", "%[t2]", "%[t3]", "%[t4]", "%[t0]", "%[t1]")
            FP_FOLD("%[t2]", "%[t3]", "%[t4]", "%[t0]", "%[t1]")
            FP_ROWS2("24", "%[t3]", "%[t4]", "%[t0]", "%[t1]", "%[t2]")
            FP_REDUCE("%[t3]", "%[t4]", "%[t0]", "%[t1]", "%[t2]")
            : FP_SCRATCH
            : [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d),
              FP_READS(a), FP_READS(b), FP_READS(c), FP_READS(d), FP_CONSTANTS
            : "rdx", "cc");
    fp_reduce_once(r, t4, t0, t1, t2);
}
#endif

/* --- the choice between the two bodies --- */

static int fp_has_adx;

/* Detects the instructions; returns 0 if `allow` is 0, so that tests can run both bodies. */
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

/* One factor may be a sum below 2p. */
FE_INLINE void fp_mul(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    FP_CHOOSE(fp_mul_adx(r, a, b), fp_mul_portable(r, a, b))
}

/* r = ab + cd, for factors of at most p. */
FE_INLINE void fp_dot2(
    uint64_t* r, const uint64_t* a, const uint64_t* b, const uint64_t* c, const uint64_t* d) {
    FP_CHOOSE(fp_dot2_adx(r, a, b, c, d), fp_dot2_portable(r, a, b, c, d))
}

/* r = c / x; 0 if x is 0. */
static void fp_divide(uint64_t* r, const uint64_t* c, const uint64_t* x) {
    static const fe_odd_modulus modulus = {{FP_P0, FP_P1, FP_P2, FP_P3}, FP_N0};
    fe_divide_modulo(r, c, x, &modulus);
}

/* --- products in Fp2 = Fp[u] / (u^2 + 1): real part first --- */

/* Sums of two products cost less than Karatsuba with its sums and differences of unreduced
   products. */
FE_INLINE void fp2_mul(uint64_t* r, const uint64_t* a, const uint64_t* b) {
    uint64_t negative[4], real[4];
    fe_sub256(negative, fp_p, b + 4);
    fp_dot2(real, a, b, a + 4, negative);
    fp_dot2(r + 4, a, b + 4, a + 4, b);
    fe_copy32(r, real);
}

/* (a + b u)^2 = (a + b)(a - b) + 2ab u */
FE_INLINE void fp2_sqr(uint64_t* r, const uint64_t* a) {
    uint64_t sum[4], difference[4], twice[4];
    fe_add256(sum, a, a + 4);
    fp_sub(difference, a, a + 4);
    fe_add256(twice, a, a);
    fp_mul(r + 4, twice, a + 4);
    fp_mul(r, sum, difference);
}

#endif
