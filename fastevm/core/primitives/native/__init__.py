"""Finds and checks C functions inside the extension modules of other packages.

Each module computes known answers with its library when it loads. A wrong answer raises an
ImportError that names the package and stops the start. There is no fallback implementation.

| package | library | for | known answers |
|---|---|---|---|
| coincurve | libsecp256k1 | senders, ECRECOVER | the address of a key, who signed |
| ckzg | blst | BLS12-381, point evaluation, SHA-256 | a digest, sums, multiples, pairings |
| gmpy2 | GMP | MODEXP, inverses of BN254 | a power, an inverse, its allocator |
| pycryptodome | own RIPEMD-160 | RIPEMD-160 | a digest |
"""
