/* Primes p modulo which contracts compute inverses as the power p - 2. */
#ifndef FASTEVM_PRECOMPILES_KNOWN_PRIMES_H
#define FASTEVM_PRECOMPILES_KNOWN_PRIMES_H

#include "fastevm/core/precompiles/quotient.h"

static const fe_odd_modulus fe_known_primes[] = {
    /* the order of BN254, the scalar field of proofs */
    {{UINT64_C(0x43e1f593f0000001), UINT64_C(0x2833e84879b97091),
      UINT64_C(0xb85045b68181585d), UINT64_C(0x30644e72e131a029)},
     UINT64_C(0xc2e1f593efffffff)},
    /* the base field of BN254 */
    {{UINT64_C(0x3c208c16d87cfd47), UINT64_C(0x97816a916871ca8d),
      UINT64_C(0xb85045b68181585d), UINT64_C(0x30644e72e131a029)},
     UINT64_C(0x87d20782e4866389)},
    /* the order of BLS12-381 */
    {{UINT64_C(0xffffffff00000001), UINT64_C(0x53bda402fffe5bfe),
      UINT64_C(0x3339d80809a1d805), UINT64_C(0x73eda753299d7d48)},
     UINT64_C(0xfffffffeffffffff)},
};

/* Returns the prime if the modulus is one of these, else NULL. */
FE_INLINE const fe_odd_modulus* fe_known_prime(const uint64_t* p) {
    for (size_t i = 0; i < sizeof(fe_known_primes) / sizeof(fe_known_primes[0]); i++)
        if (memcmp(p, fe_known_primes[i].p, 32) == 0) return &fe_known_primes[i];
    return NULL;
}

#endif
