# RLP of trie nodes (leaves, extensions, branches) and their digests.
from libc.stdint cimport uint8_t, uint32_t

from fastevm.core.primitives.buffer cimport Buffer


cdef enum:
    DIGEST_SIZE = 32
    RADIX = 16
    ENDS_HERE = 16            # slot of a branch's own value, after its children


# A parent's reference to a node: keccak-256 of its RLP, or the RLP itself if it is shorter.
cdef struct Digest:
    uint8_t size              # DIGEST_SIZE: a hash; less: the RLP; 0: not computed
    uint8_t bytes[DIGEST_SIZE]


# The nibbles [start, end) in a key.
cdef struct Path:
    const uint8_t* key
    uint32_t start
    uint32_t end


cdef inline uint32_t nibble_at(const uint8_t* key, uint32_t at) noexcept nogil:
    return (key[at >> 1] & 15) if at & 1 else (key[at >> 1] >> 4)


# Append the RLP of a node. False if out of memory.
cdef bint append_leaf(
    Buffer* out, const Path* path, const uint8_t* value, size_t size
) noexcept nogil
# Computes the digest of a leaf, whose value has at least 136 bytes and is not copied.
cdef void digest_of_long_leaf(
    const Path* path, const uint8_t* value, size_t size, Digest* out
) noexcept nogil
cdef bint append_extension(Buffer* out, const Path* path, const Digest* child) noexcept nogil
# Appends a branch. `children`: RADIX digests, NULL for a missing child. The value is usually empty.
cdef bint append_branch(
    Buffer* out, const Digest** children, const uint8_t* value, size_t size
) noexcept nogil

# Computes the digest of the RLP that was appended since `start`.
cdef void digest_of(const Buffer* encoded, size_t start, Digest* out) noexcept nogil
