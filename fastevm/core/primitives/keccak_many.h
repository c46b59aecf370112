/* Keccak-256 of many messages: the same rounds on vectors, one message in each lane.

   A permutation of eight lanes takes 1.8 times as long as of one lane, of four lanes twice as long.
   When the message of a lane ends, the lane takes the next message, so messages of different sizes
   keep all lanes busy. When only one message remains, it continues without vectors. */
#ifndef FASTEVM_KECCAK_MANY_H
#define FASTEVM_KECCAK_MANY_H

#include "fastevm/core/primitives/keccak.h"

#define FE_MOST_LANES 8

typedef struct {
    const uint8_t* data;
    size_t size;
    uint8_t* out; /* 32 bytes; must not overlap the data of another message */
} fe_keccak_job;

#if FE_X86_64
typedef uint64_t fe_four __attribute__((vector_size(32)));
typedef uint64_t fe_eight __attribute__((vector_size(64)));

#define FE_KECCAK_F_OVER(TYPE)                                                                    \
    TYPE a[25], e[25], b0, b1, b2, b3, b4, c0, c1, c2, c3, c4, d0, d1, d2, d3, d4;                \
    memcpy(a, state, sizeof a);                                                                   \
    for (int i = 0; i < 24; i += 2) {                                                             \
        FE_ROUND(e, a, fe_keccak_rounds[i])                                                       \
        FE_ROUND(a, e, fe_keccak_rounds[i + 1])                                                   \
    }                                                                                             \
    memcpy(state, a, sizeof a);

__attribute__((target("avx2"))) static void fe_keccak_f_four(uint64_t* state) {
    FE_KECCAK_F_OVER(fe_four)
}

__attribute__((target("avx512f"))) static void fe_keccak_f_eight(uint64_t* state) {
    FE_KECCAK_F_OVER(fe_eight)
}
#endif

/* Word i of lane l is state[i * lanes + l]; 0 lanes: the processor has no vectors. */
static int fe_keccak_lanes = 0;
static void (*fe_keccak_f_wide)(uint64_t* state) = 0;

/* Selects the widest vectors up to `most` lanes. Called when the module loads, and by tests. */
static void fe_keccak_many_choose(int most) {
    fe_keccak_lanes = 0;
#if FE_X86_64
    __builtin_cpu_init();
    if (most >= 8 && __builtin_cpu_supports("avx512f")) {
        fe_keccak_lanes = 8;
        fe_keccak_f_wide = fe_keccak_f_eight;
    } else if (most >= 4 && __builtin_cpu_supports("avx2")) {
        fe_keccak_lanes = 4;
        fe_keccak_f_wide = fe_keccak_f_four;
    }
#endif
}

typedef struct {
    const uint8_t* data;
    size_t left;
    uint8_t* out; /* NULL: the lane is idle */
    int ends;     /* whether the last block has been absorbed */
} fe_keccak_lane;

FE_INLINE void fe_lane_begin(
    uint64_t* state, int lanes, fe_keccak_lane* lane, const fe_keccak_job* job
) {
    lane->data = job->data;
    lane->left = job->size;
    lane->out = job->out;
    lane->ends = 0;
    for (int i = 0; i < 25; i++) state[i * lanes] = 0;
}

FE_INLINE void fe_lane_absorb_block(uint64_t* state, int lanes, const uint8_t* block) {
    for (int i = 0; i < FE_KECCAK_RATE / 8; i++)
        state[i * lanes] ^= FE_LITTLE64(fe_load64(block + 8 * i));
}

/* Absorbs the next block of a lane, padded if it is the last. */
FE_INLINE void fe_lane_absorb(uint64_t* state, int lanes, fe_keccak_lane* lane) {
    const uint8_t* data = lane->data;
    size_t left = lane->left, words = left / 8, i = 0;
    if (left >= FE_KECCAK_RATE) {
        fe_lane_absorb_block(state, lanes, data);
        lane->data += FE_KECCAK_RATE;
        lane->left -= FE_KECCAK_RATE;
        return;
    }
    for (; i < words; i++) state[i * lanes] ^= FE_LITTLE64(fe_load64(data + 8 * i));
    uint64_t last = UINT64_C(1) << 8 * (left & 7);
    for (i = 8 * words; i < left; i++) last |= (uint64_t)data[i] << 8 * (i & 7);
    state[words * lanes] ^= last;
    state[(FE_KECCAK_RATE / 8 - 1) * lanes] ^= UINT64_C(1) << 63;
    lane->ends = 1;
}

FE_INLINE void fe_lane_finish(uint64_t* state, int lanes, fe_keccak_lane* lane) {
    for (int i = 0; i < 4; i++) fe_store64(lane->out + 8 * i, FE_LITTLE64(state[i * lanes]));
    lane->out = 0;
}

/* Finishes the message in this lane without vectors. */
FE_INLINE void fe_lane_alone(const uint64_t* state, int lanes, const fe_keccak_lane* lane) {
    uint64_t own[25];
    for (int i = 0; i < 25; i++) own[i] = state[i * lanes];
    fe_keccak_end(lane->out, own, lane->data, lane->left);
}

static void fe_keccak256_many(const fe_keccak_job* jobs, size_t count) {
    uint64_t state[25 * FE_MOST_LANES] __attribute__((aligned(64))) = {0};
    fe_keccak_lane lane[FE_MOST_LANES] = {{0}};
    const int lanes = fe_keccak_lanes;
    size_t next = 0, busy = 0;
    while (busy > 1 || (lanes && next + 1 < count)) {
        for (int l = 0; l < lanes; l++) {
            if (!lane[l].out && next < count) {
                fe_lane_begin(state + l, lanes, &lane[l], &jobs[next++]);
                busy++;
            }
            if (lane[l].out) fe_lane_absorb(state + l, lanes, &lane[l]);
        }
        fe_keccak_f_wide(state);
        for (int l = 0; l < lanes; l++) {
            if (lane[l].out && lane[l].ends) {
                fe_lane_finish(state + l, lanes, &lane[l]);
                busy--;
            }
        }
    }
    for (int l = 0; busy && l < lanes; l++)
        if (lane[l].out) fe_lane_alone(state + l, lanes, &lane[l]);
    for (; next < count; next++) fe_keccak256(jobs[next].out, jobs[next].data, jobs[next].size);
}

#endif
