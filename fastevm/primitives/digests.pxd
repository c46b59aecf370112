# Keccak digests that were computed before: messages of 32 or 64 bytes, as Solidity makes them of
# array and mapping slots, are hashed again and again (a balance is read, then written). One place
# for each message, where the last one stays. It begins as zeros and has one owner.
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from fastevm.primitives.intrinsics cimport load64
from fastevm.primitives.keccak cimport keccak256_32, keccak256_64
from fastevm.primitives.word cimport Word, word_copy, word_load


cdef enum:
    DIGEST_PLACE_BITS = 8
    DIGEST_PLACES = 256       # 26 KiB in all


cdef struct KnownDigest:
    uint64_t message[8]       # the first four for 32 bytes
    Word digest
    uint64_t size             # of the message in bytes; 0: none yet


cdef struct Digests:
    KnownDigest known[DIGEST_PLACES]


# By the ends of a key (padded on either side) and the end of the slot that it is hashed with.
cdef inline KnownDigest* digest_place(
    Digests* d, uint64_t first, uint64_t fourth, uint64_t last
) noexcept nogil:
    cdef uint64_t factor = 0x9e3779b97f4a7c15ULL     # 2^64 by the golden ratio
    cdef uint64_t mixed = ((first + fourth) * factor + last) * factor
    return &d.known[mixed >> (64 - DIGEST_PLACE_BITS)]


cdef inline bint are_four(const uint64_t* words, const uint8_t* data) noexcept nogil:
    return ((words[0] ^ load64(data)) | (words[1] ^ load64(data + 8))
            | (words[2] ^ load64(data + 16)) | (words[3] ^ load64(data + 24))) == 0


cdef inline void digest_of_32(Digests* d, Word* out, const uint8_t* data) noexcept nogil:
    cdef KnownDigest* known = digest_place(d, load64(data), load64(data + 24), 0)
    cdef uint8_t digest[32]
    if known.size != 32 or not are_four(known.message, data):
        keccak256_32(digest, data)
        word_load(&known.digest, digest)
        memcpy(known.message, data, 32)
        known.size = 32
    word_copy(out, &known.digest)


cdef inline void digest_of_64(Digests* d, Word* out, const uint8_t* data) noexcept nogil:
    cdef KnownDigest* known = digest_place(
        d, load64(data), load64(data + 24), load64(data + 56)
    )
    cdef uint8_t digest[32]
    if (known.size != 64 or not are_four(known.message, data)
            or not are_four(&known.message[4], data + 32)):
        keccak256_64(digest, data)
        word_load(&known.digest, digest)
        memcpy(known.message, data, 64)
        known.size = 64
    word_copy(out, &known.digest)
