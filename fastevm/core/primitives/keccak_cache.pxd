# A cache of Keccak digests of messages of 32 or 64 bytes. Solidity hashes such messages for array
# and mapping slots, often the same message several times (a balance is read, then written). Each
# message has one possible entry, and an entry keeps its last message. The cache starts zeroed and
# has one owner.
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from fastevm.core.primitives.intrinsics cimport load64
from fastevm.core.primitives.keccak cimport keccak256_32, keccak256_64
from fastevm.core.primitives.word cimport Word, word_copy, word_load


cdef enum:
    CACHE_BITS = 8
    CACHE_ENTRIES = 256       # 26 KiB


cdef struct CachedDigest:
    uint64_t message[8]       # 32 bytes use the first four
    Word digest
    uint64_t size             # bytes of the message; 0: empty


cdef struct KeccakCache:
    CachedDigest entries[CACHE_ENTRIES]


# Returns the only entry for a message, selected by three of its words: both ends of the mapping key
# (which may be padded on either side) and the end of the slot number.
cdef inline CachedDigest* cache_entry(
    KeccakCache* d, uint64_t first, uint64_t fourth, uint64_t last
) noexcept nogil:
    cdef uint64_t factor = 0x9e3779b97f4a7c15ULL     # 2^64 divided by the golden ratio
    cdef uint64_t mixed = ((first + fourth) * factor + last) * factor
    return &d.entries[mixed >> (64 - CACHE_BITS)]


cdef inline bint equal_32(const uint64_t* words, const uint8_t* data) noexcept nogil:
    return ((words[0] ^ load64(data)) | (words[1] ^ load64(data + 8))
            | (words[2] ^ load64(data + 16)) | (words[3] ^ load64(data + 24))) == 0


cdef inline void cached_keccak256_32(KeccakCache* d, Word* out, const uint8_t* data) noexcept nogil:
    cdef CachedDigest* entry = cache_entry(d, load64(data), load64(data + 24), 0)
    cdef uint8_t digest[32]
    if entry.size != 32 or not equal_32(entry.message, data):
        keccak256_32(digest, data)
        word_load(&entry.digest, digest)
        memcpy(entry.message, data, 32)
        entry.size = 32
    word_copy(out, &entry.digest)


cdef inline void cached_keccak256_64(KeccakCache* d, Word* out, const uint8_t* data) noexcept nogil:
    cdef CachedDigest* entry = cache_entry(
        d, load64(data), load64(data + 24), load64(data + 56)
    )
    cdef uint8_t digest[32]
    if (entry.size != 64 or not equal_32(entry.message, data)
            or not equal_32(&entry.message[4], data + 32)):
        keccak256_64(digest, data)
        word_load(&entry.digest, digest)
        memcpy(entry.message, data, 64)
        entry.size = 64
    word_copy(out, &entry.digest)
