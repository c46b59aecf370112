/* Keccak-f[1600] in registers (FIPS 202, section 3), and the 256-bit sponge around it. */
#ifndef FASTEVM_KECCAK_H
#define FASTEVM_KECCAK_H

#include "fastevm/core/primitives/intrinsics.h"

#define FE_KECCAK_RATE 136

static const uint64_t fe_keccak_rounds[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
    0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
};

#define FE_ROL(x, n) (((x) << (n)) | ((x) >> ((64 - (n)) & 63)))

/* Theta and rho move five lanes of A (one of each column), pi puts them side by side, chi mixes
   them into one plane of E. The numbers are lane = x + 5y and its rotation. */
#define FE_PLANE(E, A, e, i0, n0, i1, n1, i2, n2, i3, n3, i4, n4, s0, s1, s2, s3, s4, iota)       \
    b0 = FE_ROL(A[i0] ^ s0, n0);                                                                  \
    b1 = FE_ROL(A[i1] ^ s1, n1);                                                                  \
    b2 = FE_ROL(A[i2] ^ s2, n2);                                                                  \
    b3 = FE_ROL(A[i3] ^ s3, n3);                                                                  \
    b4 = FE_ROL(A[i4] ^ s4, n4);                                                                  \
    E[e] = b0 ^ (~b1 & b2) ^ (iota);                                                              \
    E[e + 1] = b1 ^ (~b2 & b3);                                                                   \
    E[e + 2] = b2 ^ (~b3 & b4);                                                                   \
    E[e + 3] = b3 ^ (~b4 & b0);                                                                   \
    E[e + 4] = b4 ^ (~b0 & b1);

#define FE_ROUND(E, A, constant)                                                                  \
    c0 = A[0] ^ A[5] ^ A[10] ^ A[15] ^ A[20];                                                     \
    c1 = A[1] ^ A[6] ^ A[11] ^ A[16] ^ A[21];                                                     \
    c2 = A[2] ^ A[7] ^ A[12] ^ A[17] ^ A[22];                                                     \
    c3 = A[3] ^ A[8] ^ A[13] ^ A[18] ^ A[23];                                                     \
    c4 = A[4] ^ A[9] ^ A[14] ^ A[19] ^ A[24];                                                     \
    d0 = c4 ^ FE_ROL(c1, 1);                                                                      \
    d1 = c0 ^ FE_ROL(c2, 1);                                                                      \
    d2 = c1 ^ FE_ROL(c3, 1);                                                                      \
    d3 = c2 ^ FE_ROL(c4, 1);                                                                      \
    d4 = c3 ^ FE_ROL(c0, 1);                                                                      \
    FE_PLANE(E, A, 0, 0, 0, 6, 44, 12, 43, 18, 21, 24, 14, d0, d1, d2, d3, d4, constant)          \
    FE_PLANE(E, A, 5, 3, 28, 9, 20, 10, 3, 16, 45, 22, 61, d3, d4, d0, d1, d2, 0)                 \
    FE_PLANE(E, A, 10, 1, 1, 7, 6, 13, 25, 19, 8, 20, 18, d1, d2, d3, d4, d0, 0)                  \
    FE_PLANE(E, A, 15, 4, 27, 5, 36, 11, 10, 17, 15, 23, 56, d4, d0, d1, d2, d3, 0)               \
    FE_PLANE(E, A, 20, 2, 62, 8, 55, 14, 39, 15, 41, 21, 2, d2, d3, d4, d0, d1, 0)

FE_INLINE void fe_keccak_f_body(uint64_t* state) {
    uint64_t a[25], e[25], b0, b1, b2, b3, b4, c0, c1, c2, c3, c4, d0, d1, d2, d3, d4;
    memcpy(a, state, sizeof a);
    for (int i = 0; i < 24; i += 2) {
        FE_ROUND(e, a, fe_keccak_rounds[i])
        FE_ROUND(a, e, fe_keccak_rounds[i + 1])
    }
    memcpy(state, a, sizeof a);
}

static void fe_keccak_f_portable(uint64_t* state) { fe_keccak_f_body(state); }

#if FE_X86_64
/* andn and rorx: a fifth faster than baseline x86-64. */
__attribute__((target("bmi,bmi2"))) static void fe_keccak_f_bmi(uint64_t* state) {
    fe_keccak_f_body(state);
}
#endif

static void (*fe_keccak_f)(uint64_t* state) = fe_keccak_f_portable;

/* Selects the fastest variant that this processor supports, if allowed. Runs when the module loads.
   Returns whether the selected variant is not the portable one. */
static int fe_keccak_choose(int allow) {
    fe_keccak_f = fe_keccak_f_portable;
#if FE_X86_64
    __builtin_cpu_init();
    if (allow && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        fe_keccak_f = fe_keccak_f_bmi;
#endif
    return fe_keccak_f != fe_keccak_f_portable;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FE_LITTLE64(x) (x)
#else
#define FE_LITTLE64(x) __builtin_bswap64(x)
#endif

FE_INLINE void fe_keccak_absorb(uint64_t* state, const uint8_t* block, int lanes) {
    for (int i = 0; i < lanes; i++) state[i] ^= FE_LITTLE64(fe_load64(block + 8 * i));
}

FE_INLINE void fe_keccak_squeeze(uint8_t* out, const uint64_t* state) {
    for (int i = 0; i < 4; i++) fe_store64(out + 8 * i, FE_LITTLE64(state[i]));
}

/* Absorbs the last, partial block of a message. */
static void fe_keccak_end(uint8_t* out, uint64_t* state, const uint8_t* data, size_t size) {
    uint8_t last[FE_KECCAK_RATE] = {0};
    for (; size >= FE_KECCAK_RATE; data += FE_KECCAK_RATE, size -= FE_KECCAK_RATE) {
        fe_keccak_absorb(state, data, FE_KECCAK_RATE / 8);
        fe_keccak_f(state);
    }
    if (size) memcpy(last, data, size); /* `data` may be NULL if `size` is 0 */
    last[size] = 0x01;
    last[FE_KECCAK_RATE - 1] |= 0x80;
    fe_keccak_absorb(state, last, FE_KECCAK_RATE / 8);
    fe_keccak_f(state);
    fe_keccak_squeeze(out, state);
}

static void fe_keccak256(uint8_t* out, const uint8_t* data, size_t size) {
    uint64_t state[25] = {0};
    fe_keccak_end(out, state, data, size);
}

/* Hashes the concatenation of a head shorter than a block and data that fills the block. */
static void fe_keccak256_joined(
    uint8_t* out, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size
) {
    uint64_t state[25] = {0};
    uint8_t first[FE_KECCAK_RATE];
    size_t rest = FE_KECCAK_RATE - head_size;
    memcpy(first, head, head_size);
    memcpy(first + head_size, data, rest);
    fe_keccak_absorb(state, first, FE_KECCAK_RATE / 8);
    fe_keccak_f(state);
    fe_keccak_end(out, state, data + rest, size - rest);
}

/* A message of whole lanes that fits the first block: copies no tail. */
static void fe_keccak256_lanes(uint8_t* out, const uint8_t* data, int lanes) {
    uint64_t state[25] = {0};
    fe_keccak_absorb(state, data, lanes);
    state[lanes] = 1;
    state[FE_KECCAK_RATE / 8 - 1] = UINT64_C(1) << 63;
    fe_keccak_f(state);
    fe_keccak_squeeze(out, state);
}

#endif
