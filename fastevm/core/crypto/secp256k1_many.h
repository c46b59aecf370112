/* A signature and its recovered key, for recovery in lanes. */
#ifndef FASTEVM_SECP256K1_MANY_H
#define FASTEVM_SECP256K1_MANY_H

#include <stdint.h>

/* A signature to recover from; r and s are in 1 .. n - 1. Numbers have 64-bit words, least
   significant first. */
typedef struct {
    uint64_t z[4], r[4], s[4];
    int y_parity;
    int found;       /* result: whether `key` is set; if not, use libsecp256k1 */
    uint64_t key[8]; /* x, then y */
} fe_recovery;
#endif
