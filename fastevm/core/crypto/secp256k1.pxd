# Recovering who signed a hash, through the libsecp256k1 that coincurve carries; any thread, no GIL.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport load64_big


# The public key (x || y, 64 bytes) that signed the hash. False when r or s is 0 or not below the
# group order, when y_parity is neither 0 nor 1, or when no such point exists. A high s is
# accepted: the rule of EIP-2 belongs to transactions.
cdef bint secp256k1_recover(
    const uint8_t* hash32, const uint8_t* r32, const uint8_t* s32, int y_parity, uint8_t* pubkey64
) noexcept nogil
# The low 20 bytes of the key's Keccak-256.
cdef bint recover_address(
    const uint8_t* hash32, const uint8_t* r32, const uint8_t* s32, int y_parity, Address* out
) noexcept nogil


cdef extern from "fastevm/core/crypto/secp256k1_many.h" nogil:
    # A signature whose r and s lie in 1 .. n - 1; words of 64 bits, lowest first.
    ctypedef struct Recovery "fe_recovery":
        uint64_t z[4]             # the hash
        uint64_t r[4]
        uint64_t s[4]
        int y_parity
        int found                 # set: whether there is a key
        uint64_t key[8]           # x, then y


cdef enum:
    RECOVERY_LANES = 8
    G_MULTIPLES = 128             # odd multiples of G that the lanes need


# The lanes' code: AVX-512 IFMA, or what a test puts in its place.
cdef struct LaneFunctions:
    bint available
    void (*keep_multiple)(int number, const uint64_t* x, const uint64_t* y) noexcept nogil
    void (*recover)(Recovery* jobs) noexcept nogil


# A number as the lanes have it.
cdef inline void read_words(uint64_t* words, const uint8_t* bytes32) noexcept nogil:
    cdef int i
    for i in range(4):
        words[i] = load64_big(bytes32 + 24 - 8 * i)


# Whether recover_eight is worth its while for so many signatures.
cdef bint recovers_together(size_t count) noexcept nogil
# Recover RECOVERY_LANES signatures at once; where `found`, the addresses are set.
cdef void recover_eight(Recovery* jobs, Address* out) noexcept nogil
# For tests: other code for the lanes, checked again on its first use; gives what it replaces.
cdef LaneFunctions replace_lanes(const LaneFunctions* functions) noexcept nogil
