/* Input and output of recovery in lanes. */
#ifndef FASTEVM_SECP256K1_MANY_H
#define FASTEVM_SECP256K1_MANY_H

#include <stdint.h>

/* A signature to recover from; numbers as 64-bit words, least significant first, r and s in 1 .. n
   - 1. */
typedef struct {
    uint64_t z[4], r[4], s[4];
    int y_parity;
    int found;       /* result: whether `key` is set; if not, use libsecp256k1 */
    uint64_t key[8]; /* x, then y */
} fe_recovery;
#endif
