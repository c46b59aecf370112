# Keccak-256 as Ethereum uses it, with the padding of the original submission instead of SHA-3's.
from libc.stdint cimport uint8_t


# Computes the 32-byte digest of `size` bytes. `out` may be the input itself.
cdef void keccak256(uint8_t* out, const uint8_t* data, size_t size) noexcept nogil
# Computes the digest of a head (less than 136 bytes) followed by data (at least 136 bytes).
cdef void keccak256_joined(
    uint8_t* out, const uint8_t* head, size_t head_size, const uint8_t* data, size_t size
) noexcept nogil
# Compute the digest of exactly 32 or 64 bytes: for hashed keys of tries and slots of mappings.
cdef void keccak256_32(uint8_t* out, const uint8_t* data) noexcept nogil
cdef void keccak256_64(uint8_t* out, const uint8_t* data) noexcept nogil


cdef extern from "fastevm/core/primitives/keccak_many.h" nogil:
    ctypedef struct KeccakJob "fe_keccak_job":
        const uint8_t* data
        size_t size
        uint8_t* out              # 32 bytes, must not overlap any message


# Hashes many messages, up to eight at a time in vector lanes. In eight lanes, a message takes a
# quarter of the time.
cdef void keccak256_many(const KeccakJob* jobs, size_t count) noexcept nogil
