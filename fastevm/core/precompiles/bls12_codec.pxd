# The encoding of field elements and points of BLS12-381 (EIP-2537).
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from fastevm.core.primitives.native.blst cimport (
    BlsFp, BlsFp2, BlsG1, BlsG1Affine, BlsG2, BlsG2Affine, blst,
)
from fastevm.core.primitives.intrinsics cimport load64_big


cdef enum:
    FP_BYTES = 64             # 16 zeros, then 48 big-endian bytes below the prime
    FP2_BYTES = 128           # real part, imaginary part
    G1_BYTES = 128            # x, y; all zeros is the point at infinity
    G2_BYTES = 256


# Whether the 48 bytes, as big-endian limbs, are below the prime.
cdef inline bint below_prime(const uint8_t* p) noexcept nogil:
    cdef uint64_t[6] prime
    cdef int i
    cdef uint64_t limb
    prime[0] = <uint64_t>0x1a0111ea397fe69a
    prime[1] = <uint64_t>0x4b1ba7b6434bacd7
    prime[2] = <uint64_t>0x64774b84f38512bf
    prime[3] = <uint64_t>0x6730d2a0f6b0f624
    prime[4] = <uint64_t>0x1eabfffeb153ffff
    prime[5] = <uint64_t>0xb9feffffffffaaab
    for i in range(6):
        limb = load64_big(p + 8 * i)
        if limb != prime[i]:
            return limb < prime[i]
    return False


cdef inline bint decode_fp(BlsFp* r, const uint8_t* p) noexcept nogil:
    if (load64_big(p) | load64_big(p + 8)) != 0 or not below_prime(p + 16):
        return False
    blst.fp_from_bendian(r, p + 16)
    return True


cdef inline bint decode_fp2(BlsFp2* r, const uint8_t* p) noexcept nogil:
    return decode_fp(&r.re, p) and decode_fp(&r.im, p + FP_BYTES)


# Decodes a point of the curve, without the subgroup check. blst also encodes infinity as all zeros.
cdef inline bint decode_g1(BlsG1Affine* r, const uint8_t* p) noexcept nogil:
    if not decode_fp(&r.x, p) or not decode_fp(&r.y, p + FP_BYTES):
        return False
    return blst.p1_affine_is_inf(r) != 0 or blst.p1_affine_on_curve(r) != 0


cdef inline bint decode_g2(BlsG2Affine* r, const uint8_t* p) noexcept nogil:
    if not decode_fp2(&r.x, p) or not decode_fp2(&r.y, p + FP2_BYTES):
        return False
    return blst.p2_affine_is_inf(r) != 0 or blst.p2_affine_on_curve(r) != 0


cdef inline void encode_fp(uint8_t* p, const BlsFp* a) noexcept nogil:
    memset(p, 0, 16)
    blst.bendian_from_fp(p + 16, a)


cdef inline void encode_g1(uint8_t* p, const BlsG1* a) noexcept nogil:
    cdef BlsG1Affine affine
    if blst.p1_is_inf(a) != 0:
        memset(p, 0, G1_BYTES)
        return
    blst.p1_to_affine(&affine, a)
    encode_fp(p, &affine.x)
    encode_fp(p + FP_BYTES, &affine.y)


cdef inline void encode_g2(uint8_t* p, const BlsG2* a) noexcept nogil:
    cdef BlsG2Affine affine
    if blst.p2_is_inf(a) != 0:
        memset(p, 0, G2_BYTES)
        return
    blst.p2_to_affine(&affine, a)
    encode_fp(p, &affine.x.re)
    encode_fp(p + FP_BYTES, &affine.x.im)
    encode_fp(p + FP2_BYTES, &affine.y.re)
    encode_fp(p + FP2_BYTES + FP_BYTES, &affine.y.im)
