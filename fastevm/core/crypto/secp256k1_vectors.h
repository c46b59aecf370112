/* Vector operations of AVX-512 IFMA. With FE_PORTABLE_VECTORS they are portable C, which only
   tests use: it is slower than single recoveries. */
#ifndef FASTEVM_SECP256K1_VECTORS_H
#define FASTEVM_SECP256K1_VECTORS_H

#include <stdint.h>
#include <string.h>

#define FE_LANES 8

#if !defined(FE_PORTABLE_VECTORS)
#include <immintrin.h>

#define FE_IFMA __attribute__((target("avx512f,avx512ifma")))
typedef __m512i fe_vec;
typedef __mmask8 fe_mask;

#define FE_ALL(x) _mm512_set1_epi64((long long)(x))
#define FE_LOW(sum, a, b) _mm512_madd52lo_epu64(sum, a, b)
#define FE_HIGH(sum, a, b) _mm512_madd52hi_epu64(sum, a, b)
#define FE_VEC_ZERO() _mm512_setzero_si512()
#define FE_VEC_ADD(a, b) _mm512_add_epi64(a, b)
#define FE_VEC_SUB(a, b) _mm512_sub_epi64(a, b)
#define FE_VEC_AND(a, b) _mm512_and_si512(a, b)
#define FE_VEC_OR(a, b) _mm512_or_si512(a, b)
#define FE_VEC_LEFT(a, bits) _mm512_slli_epi64(a, bits)
#define FE_VEC_RIGHT(a, bits) _mm512_srli_epi64(a, bits)
#define FE_VEC_LOAD(p) _mm512_loadu_si512(p)
/* Blend: b in the lanes of the mask, a in the others. */
#define FE_VEC_SELECT(a, mask, b) _mm512_mask_mov_epi64(a, mask, b)
#define FE_VEC_EQUAL(a, b) _mm512_cmpeq_epi64_mask(a, b)
/* Gathers the words at p + offset. */
#define FE_VEC_GATHER(offset, p) _mm512_i64gather_epi64(offset, p, 8)

#else

#define FE_IFMA
typedef uint64_t fe_vec __attribute__((vector_size(64)));
typedef uint8_t fe_mask;

static inline fe_vec fe_vec_all(uint64_t x) {
    fe_vec r;
    for (int i = 0; i < FE_LANES; i++) r[i] = x;
    return r;
}

static inline fe_vec fe_vec_product(fe_vec sum, fe_vec a, fe_vec b, int shift) {
    const uint64_t mask = (1ULL << 52) - 1;
    for (int i = 0; i < FE_LANES; i++)
        sum[i] += (uint64_t)((unsigned __int128)(a[i] & mask) * (b[i] & mask) >> shift) & mask;
    return sum;
}

static inline fe_vec fe_vec_load(const void* p) {
    fe_vec r;
    memcpy(&r, p, sizeof r);
    return r;
}

static inline fe_vec fe_vec_select(fe_vec a, fe_mask mask, fe_vec b) {
    for (int i = 0; i < FE_LANES; i++)
        if (mask >> i & 1) a[i] = b[i];
    return a;
}

static inline fe_mask fe_vec_equal(fe_vec a, fe_vec b) {
    unsigned mask = 0;
    for (int i = 0; i < FE_LANES; i++) mask |= (unsigned)(a[i] == b[i]) << i;
    return (fe_mask)mask;
}

static inline fe_vec fe_vec_gather(fe_vec offset, const long long* p) {
    for (int i = 0; i < FE_LANES; i++) offset[i] = (uint64_t)p[offset[i]];
    return offset;
}

#define FE_ALL(x) fe_vec_all((uint64_t)(x))
#define FE_LOW(sum, a, b) fe_vec_product(sum, a, b, 0)
#define FE_HIGH(sum, a, b) fe_vec_product(sum, a, b, 52)
#define FE_VEC_ZERO() fe_vec_all(0)
#define FE_VEC_ADD(a, b) ((a) + (b))
#define FE_VEC_SUB(a, b) ((a) - (b))
#define FE_VEC_AND(a, b) ((a) & (b))
#define FE_VEC_OR(a, b) ((a) | (b))
#define FE_VEC_LEFT(a, bits) ((a) << (bits))
#define FE_VEC_RIGHT(a, bits) ((a) >> (bits))
#define FE_VEC_LOAD(p) fe_vec_load(p)
#define FE_VEC_SELECT(a, mask, b) fe_vec_select(a, mask, b)
#define FE_VEC_EQUAL(a, b) fe_vec_equal(a, b)
#define FE_VEC_GATHER(offset, p) fe_vec_gather(offset, p)
#endif
#endif
