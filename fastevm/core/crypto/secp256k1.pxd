# Recovers signers with the libsecp256k1 inside coincurve; callable from any thread without the GIL.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport load64_big


# Recovers the public key (x || y, 64 bytes) that signed the hash. Returns False if r or s is 0 or
# not below the group order, if y_parity is neither 0 nor 1, or if no key matches. A high s is
# accepted: the rule of EIP-2 applies to transactions only.
cdef bint secp256k1_recover(
    const uint8_t* hash32, const uint8_t* r32, const uint8_t* s32, int y_parity, uint8_t* pubkey64
) noexcept nogil
# Recovers the address of the signer: the low 20 bytes of the public key's Keccak-256.
cdef bint recover_address(
    const uint8_t* hash32, const uint8_t* r32, const uint8_t* s32, int y_parity, Address* out
) noexcept nogil


cdef extern from "fastevm/core/crypto/secp256k1_many.h" nogil:
    # A signature to recover from; r and s are in 1 .. n - 1. Numbers have four 64-bit words, least
    # significant first.
    ctypedef struct Recovery "fe_recovery":
        uint64_t z[4]             # the hash
        uint64_t r[4]
        uint64_t s[4]
        int y_parity
        int found                 # result: whether a key matches
        uint64_t key[8]           # x, then y


cdef enum:
    RECOVERY_LANES = 8
    G_MULTIPLES = 128             # odd multiples of G that the vector code needs


# Functions of the AVX-512 IFMA code. A test can replace them.
cdef struct LaneFunctions:
    bint available
    void (*keep_multiple)(int number, const uint64_t* x, const uint64_t* y) noexcept nogil
    void (*recover)(Recovery* jobs) noexcept nogil


# Converts a big-endian number to the representation of the vector code.
cdef inline void read_words(uint64_t* words, const uint8_t* bytes32) noexcept nogil:
    cdef int i
    for i in range(4):
        words[i] = load64_big(bytes32 + 24 - 8 * i)


# Whether recover_eight is faster than single recoveries for `count` signatures.
cdef bint recovers_together(size_t count) noexcept nogil
# Recovers RECOVERY_LANES signatures together. Sets the address of each job that is `found`.
cdef void recover_eight(Recovery* jobs, Address* out) noexcept nogil
# For tests: replaces the vector code and returns the old code. The next use runs the self-test
# again.
cdef LaneFunctions replace_lanes(const LaneFunctions* functions) noexcept nogil
