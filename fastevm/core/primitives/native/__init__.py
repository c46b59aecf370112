"""C functions inside the extension modules of other packages.

Each module asks its library questions with known answers when it loads. A wrong answer is an
ImportError that names the package and stops the start: no second implementation takes its place.

| package | library | for | questions |
|---|---|---|---|
| coincurve | libsecp256k1 | senders, ECRECOVER | the address of a key, who signed |
| ckzg | blst | BLS12-381, point evaluation, SHA-256 | a digest, sums, multiples, pairings |
| gmpy2 | GMP | MODEXP, inverses of BN254 | a power, an inverse, its allocator |
| pycryptodome | its RIPEMD-160 | RIPEMD-160 | a digest |
"""
