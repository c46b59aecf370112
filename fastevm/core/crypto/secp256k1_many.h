/* What recovery in lanes is asked, and what it answers. */
#ifndef FASTEVM_SECP256K1_MANY_H
#define FASTEVM_SECP256K1_MANY_H

#include <stdint.h>

/* A signature to recover from; numbers in words of 64 bits, lowest first, r and s in 1 .. n - 1. */
typedef struct {
    uint64_t z[4], r[4], s[4];
    int y_parity;
    int found;       /* set: whether `key` is; else it is for somebody who knows all cases */
    uint64_t key[8]; /* x, then y */
} fe_recovery;
#endif
