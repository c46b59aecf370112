# Open-addressing tables: seeded hashes of keys, and table sizes.
#
# Contracts choose keys, so every hash is mixed with a seed that only this process knows.
# Capacities are powers of two, probing is linear from `hash & mask`, and a table is at most three
# quarters full.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport load32, load64, u128
from fastevm.core.primitives.word cimport Word


# Returns the two halves of a 128-bit product folded together.
cdef inline uint64_t fold(uint64_t a, uint64_t b) noexcept nogil:
    cdef u128 t = <u128>a * <u128>b
    return <uint64_t>t ^ <uint64_t>(t >> 64)


# Returns a second seed, so that both factors of a product depend on a seed: no key can be chosen
# that makes a factor zero.
cdef inline uint64_t second_seed(uint64_t seed) noexcept nogil:
    return (seed << 32 | seed >> 32) ^ <uint64_t>0xd6e8feb86659fd93


cdef inline uint64_t hash_limbs(
    uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t seed
) noexcept nogil:
    cdef uint64_t other = second_seed(seed)
    return fold(fold(a ^ seed, b ^ other) ^ other, fold(c ^ ~seed, d ^ ~other) ^ seed)


cdef inline uint64_t hash_word(const Word* key, uint64_t seed) noexcept nogil:
    return hash_limbs(key.d[0], key.d[1], key.d[2], key.d[3], seed)


cdef inline uint64_t hash_hash(const Hash* key, uint64_t seed) noexcept nogil:
    return hash_limbs(
        load64(key.b), load64(key.b + 8), load64(key.b + 16), load64(key.b + 24), seed
    )


cdef inline uint64_t hash_address(const Address* key, uint64_t seed) noexcept nogil:
    return hash_limbs(load64(key.b), load64(key.b + 8), load32(key.b + 16), 0, seed)


# The smallest capacity (a power of two, at least 8) with which `count` keys fill at most three
# quarters.
cdef inline size_t table_capacity(size_t count) noexcept nogil:
    cdef size_t capacity = 8
    while capacity - (capacity >> 2) < count:
        capacity <<= 1
    return capacity


# Whether adding a key to `count` keys would overfill a table of `mask + 1` slots. Always true if
# there is no table (mask 0).
cdef inline bint table_is_full(size_t count, size_t mask) noexcept nogil:
    return mask == 0 or count >= (mask + 1) - ((mask + 1) >> 2)
