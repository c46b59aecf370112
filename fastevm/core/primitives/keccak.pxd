# Keccak-256 as Ethereum uses it (the padding of the original submission, not of SHA-3).
from libc.stdint cimport uint8_t


# The 32-byte digest of `size` bytes; `out` may be the input itself.
cdef void keccak256(uint8_t* out, const uint8_t* data, size_t size) noexcept nogil
# Of a head of less than 136 bytes and `size` bytes, at least 136, behind it.
cdef void keccak256_joined(
    uint8_t* out, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size
) noexcept nogil
# Exactly 32 or 64 bytes: hashed keys of the tries, slots of Solidity's mappings.
cdef void keccak256_32(uint8_t* out, const uint8_t* data) noexcept nogil
cdef void keccak256_64(uint8_t* out, const uint8_t* data) noexcept nogil


cdef extern from "fastevm/core/primitives/keccak_many.h" nogil:
    ctypedef struct KeccakJob "fe_keccak_job":
        const uint8_t* data
        size_t size
        uint8_t* out              # 32 bytes, part of no message


# Many messages at once, up to eight in the lanes of a vector: a quarter of the time each.
cdef void keccak256_many(const KeccakJob* jobs, size_t count) noexcept nogil
