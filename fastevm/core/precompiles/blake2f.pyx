"""The compression function of BLAKE2b with any number of rounds, precompile 0x09 (EIP-152)."""

from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.precompiles.common cimport charge, size_output
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_CANCELLED, PRECOMPILE_INVALID, PRECOMPILE_NO_MEMORY, PRECOMPILE_OK,
    PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.cancellation cimport is_cancelled
from fastevm.core.primitives.intrinsics cimport bswap64, load32_big, load64_big, store64_big


cdef enum:
    INPUT_SIZE = 213          # bytes: rounds 4, state 64, message 128, offset 16, final flag 1
    SCHEDULES = 10
    STEP_ROUNDS = 100_000     # about 1 ms; a multiple of SCHEDULES

cdef uint64_t IV[8]
IV[:] = [
    <uint64_t>0x6a09e667f3bcc908, <uint64_t>0xbb67ae8584caa73b,
    <uint64_t>0x3c6ef372fe94f82b, <uint64_t>0xa54ff53a5f1d36f1,
    <uint64_t>0x510e527fade682d1, <uint64_t>0x9b05688c2b3e6c1f,
    <uint64_t>0x1f83d9abfb41bd6b, <uint64_t>0x5be0cd19137e2179,
]

# The order of the message words in each round; round 10 uses the first row again.
cdef uint8_t SIGMA[SCHEDULES][16]
SIGMA[0][:] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
SIGMA[1][:] = [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3]
SIGMA[2][:] = [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4]
SIGMA[3][:] = [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8]
SIGMA[4][:] = [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13]
SIGMA[5][:] = [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9]
SIGMA[6][:] = [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11]
SIGMA[7][:] = [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10]
SIGMA[8][:] = [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5]
SIGMA[9][:] = [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0]


cdef inline uint64_t rotate_right(uint64_t x, int n) noexcept nogil:
    return (x >> n) | (x << (64 - n))


cdef inline void mix(
    uint64_t* a, uint64_t* b, uint64_t* c, uint64_t* d, uint64_t x, uint64_t y,
) noexcept nogil:
    a[0] += b[0] + x
    d[0] = rotate_right(d[0] ^ a[0], 32)
    c[0] += d[0]
    b[0] = rotate_right(b[0] ^ c[0], 24)
    a[0] += b[0] + y
    d[0] = rotate_right(d[0] ^ a[0], 16)
    c[0] += d[0]
    b[0] = rotate_right(b[0] ^ c[0], 63)


# Applies `rounds` rounds to the working vector v. Its sixteen words are locals, so that they can
# stay in registers.
cdef void mix_rounds(uint64_t* v, const uint64_t* m, uint32_t rounds) noexcept nogil:
    cdef uint64_t v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3]
    cdef uint64_t v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7]
    cdef uint64_t v8 = v[8], v9 = v[9], va = v[10], vb = v[11]
    cdef uint64_t vc = v[12], vd = v[13], ve = v[14], vf = v[15]
    cdef uint32_t index = 0
    cdef const uint8_t* s
    while rounds != 0:
        rounds -= 1
        s = SIGMA[index]
        index = index + 1 if index + 1 < SCHEDULES else 0
        mix(&v0, &v4, &v8, &vc, m[s[0]], m[s[1]])
        mix(&v1, &v5, &v9, &vd, m[s[2]], m[s[3]])
        mix(&v2, &v6, &va, &ve, m[s[4]], m[s[5]])
        mix(&v3, &v7, &vb, &vf, m[s[6]], m[s[7]])
        mix(&v0, &v5, &va, &vf, m[s[8]], m[s[9]])
        mix(&v1, &v6, &vb, &vc, m[s[10]], m[s[11]])
        mix(&v2, &v7, &v8, &vd, m[s[12]], m[s[13]])
        mix(&v3, &v4, &v9, &ve, m[s[14]], m[s[15]])
    v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7] = v0, v1, v2, v3, v4, v5, v6, v7
    v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15] = v8, v9, va, vb, vc, vd, ve, vf


# Computes the compression function F of RFC 7693 on little-endian values. Returns False if the
# execution was cancelled.
cdef bint compress(
    uint8_t* out, uint32_t rounds, const uint8_t* state, const uint8_t* message,
    const uint8_t* offset, bint last, const int* cancel,
) noexcept nogil:
    cdef uint64_t h[8]
    cdef uint64_t m[16]
    cdef uint64_t v[16]
    cdef int i
    for i in range(16):
        m[i] = load64_little(message + 8 * i)
    for i in range(8):
        h[i] = load64_little(state + 8 * i)
        v[i] = h[i]
        v[i + 8] = IV[i]
    v[12] ^= load64_little(offset)
    v[13] ^= load64_little(offset + 8)
    if last:
        v[14] = ~v[14]
    while rounds > STEP_ROUNDS:
        mix_rounds(v, m, STEP_ROUNDS)
        rounds -= STEP_ROUNDS
        if is_cancelled(cancel):
            return False
    mix_rounds(v, m, rounds)
    for i in range(8):
        store64_little(out + 8 * i, h[i] ^ v[i] ^ v[i + 8])
    return True


cdef inline uint64_t load64_little(const uint8_t* p) noexcept nogil:
    return bswap64(load64_big(p))


cdef inline void store64_little(uint8_t* p, uint64_t x) noexcept nogil:
    store64_big(p, bswap64(x))


cdef PrecompileOutcome blake2f(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil:
    cdef uint32_t rounds
    if size != INPUT_SIZE or data[212] > 1:
        return PRECOMPILE_INVALID
    rounds = load32_big(data)
    if not charge(gas, rounds):
        return PRECOMPILE_OUT_OF_GAS
    if not size_output(output, 64):
        return PRECOMPILE_NO_MEMORY
    if not compress(
        output.bytes, rounds, data + 4, data + 68, data + 196, data[212] == 1, cancel
    ):
        return PRECOMPILE_CANCELLED
    return PRECOMPILE_OK
