"""Ethash, the proof of work before the merge, as light clients check it (Yellow Paper, J)."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from functools import lru_cache

from fastevm.errors import InvalidBlock

from fastevm.core.primitives.keccak cimport keccak256

from fastevm.core.primitives import rlp
from fastevm.core.primitives.processor import IN_USE


cdef extern from "fastevm/core/primitives/keccak.h" nogil:
    void (*fe_keccak_f)(uint64_t* state)
    bint fe_keccak_choose(bint allow)
    void fe_keccak_absorb(uint64_t* state, const uint8_t* block, int lanes)
    uint64_t FE_LITTLE64(uint64_t x)


cdef enum:
    EPOCH_BLOCKS = 30_000
    NODE_BYTES = 64
    NODE_WORDS = 16
    PAGE_WORDS = 32           # two nodes of the dataset are mixed in at a time
    CACHE_ROUNDS = 3
    PARENTS = 256             # nodes of the cache that are combined to a node of the dataset
    ACCESSES = 64
    FNV_PRIME = 0x01000193


CACHE_START, CACHE_GROWTH = 1 << 24, 1 << 17
DATASET_START, DATASET_GROWTH = 1 << 30, 1 << 23
MAX_EPOCH = 2_048
MIX_HASH_FIELD = 13       # index of the field in a header; the nonce follows
KEPT_CACHES = 2


cdef union Node:
    uint8_t b[64]
    uint32_t w[16]
    uint64_t d[8]


cdef inline uint32_t fnv(uint32_t a, uint32_t b) noexcept nogil:
    return (a * <uint32_t>FNV_PRIME) ^ b


# Computes Keccak-512 of at most eight 64-bit lanes, which fit into one block of the hash.
cdef inline void keccak512(Node* out, const uint8_t* data, int lanes) noexcept nogil:
    cdef uint64_t state[25]
    cdef int i
    memset(state, 0, sizeof(state))
    fe_keccak_absorb(state, data, lanes)
    state[lanes] ^= 1
    state[8] ^= <uint64_t>1 << 63
    fe_keccak_f(state)
    for i in range(8):
        out.d[i] = FE_LITTLE64(state[i])


cdef void fill_cache(Node* cache, uint32_t count, const uint8_t* seed) noexcept nogil:
    cdef Node mixed
    cdef const Node* before
    cdef const Node* other
    cdef uint32_t i, j
    cdef int _turn
    memset(&mixed, 0, sizeof(mixed))
    keccak512(&cache[0], seed, 4)
    for i in range(1, count):
        keccak512(&cache[i], cache[i - 1].b, 8)
    for _turn in range(CACHE_ROUNDS):
        for i in range(count):
            before = &cache[(i + count - 1) % count]
            other = &cache[cache[i].w[0] % count]
            for j in range(8):
                mixed.d[j] = before.d[j] ^ other.d[j]
            keccak512(&cache[i], mixed.b, 8)


cdef void dataset_node(Node* out, const Node* cache, uint32_t count, uint32_t index) noexcept nogil:
    cdef const Node* parent
    cdef int i, j
    memcpy(out, &cache[index % count], NODE_BYTES)
    out.w[0] ^= index
    keccak512(out, out.b, 8)
    for i in range(PARENTS):
        parent = &cache[fnv(index ^ <uint32_t>i, out.w[i % NODE_WORDS]) % count]
        for j in range(NODE_WORDS):
            out.w[j] = fnv(out.w[j], parent.w[j])
    keccak512(out, out.b, 8)


# Hashimoto (Yellow Paper, J): `seed` is the Keccak-512 of the header's seal hash and nonce; `mix`
# receives the 32-byte mix hash.
cdef void hashimoto(
    uint8_t* mix, const Node* seed, const Node* cache, uint32_t count, uint32_t pages
) noexcept nogil:
    cdef uint32_t words[PAGE_WORDS]
    cdef uint32_t digest[8]
    cdef Node looked_up
    cdef uint32_t page
    cdef int i, j, half
    memset(&looked_up, 0, sizeof(looked_up))
    for i in range(PAGE_WORDS):
        words[i] = seed.w[i % NODE_WORDS]
    for i in range(ACCESSES):
        page = fnv(<uint32_t>i ^ seed.w[0], words[i % PAGE_WORDS]) % pages
        for half in range(2):
            dataset_node(&looked_up, cache, count, 2 * page + <uint32_t>half)
            for j in range(NODE_WORDS):
                words[half * NODE_WORDS + j] = fnv(words[half * NODE_WORDS + j], looked_up.w[j])
    for i in range(8):
        j = 4 * i
        digest[i] = fnv(fnv(fnv(words[j], words[j + 1]), words[j + 2]), words[j + 3])
    memcpy(mix, digest, 32)


cdef bint is_prime(uint64_t number):
    cdef uint64_t divisor = 3
    if number % 2 == 0:
        return number == 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 2
    return True


# Returns the size of an epoch's cache or dataset in bytes: the largest size below the epoch's bound
# that holds a prime number of items.
cdef uint64_t size_at(uint64_t start, uint64_t growth, uint64_t epoch, uint64_t item):
    cdef uint64_t size = start + growth * epoch - item
    while not is_prime(size // item):
        size -= 2 * item
    return size


cdef class EthashCache:
    """The cache of an epoch of 30,000 blocks, as light clients keep it: 16 MiB and more."""
    cdef Node* nodes
    cdef uint32_t count
    cdef uint32_t pages

    def __cinit__(self, uint64_t epoch):
        cdef uint8_t seed[32]
        cdef uint64_t _i
        cdef uint64_t size = size_at(CACHE_START, CACHE_GROWTH, epoch, NODE_BYTES)
        self.count = <uint32_t>(size // NODE_BYTES)
        size = size_at(DATASET_START, DATASET_GROWTH, epoch, 2 * NODE_BYTES)
        self.pages = <uint32_t>(size // (2 * NODE_BYTES))
        self.nodes = <Node*>PyMem_RawMalloc(<size_t>self.count * NODE_BYTES)
        if self.nodes == NULL:
            raise MemoryError
        memset(seed, 0, 32)
        with nogil:
            for _i in range(epoch):
                keccak256(seed, seed, 32)
            fill_cache(self.nodes, self.count, seed)

    def __dealloc__(self):
        PyMem_RawFree(self.nodes)


@lru_cache(maxsize=KEPT_CACHES)
def cache_of(epoch):
    """Returns the cache of an epoch. Computing it takes about a quarter of a second."""
    if not 0 <= epoch < MAX_EPOCH:
        raise ValueError(f"no epoch of proof of work: {epoch}")
    return EthashCache(epoch)


def light_cache(epoch):
    """Returns the bytes of an epoch's cache."""
    cdef EthashCache cache = cache_of(epoch)
    return (<const char*>cache.nodes)[:<size_t>cache.count * NODE_BYTES]


def seal_of(seal_hash, nonce, number):
    """Returns (mix hash, result) for a 32-byte seal hash and an 8-byte nonce in block ``number``.

    The seal is valid if the result, as a number, times the difficulty is at most 2**256.
    """
    cdef EthashCache cache = cache_of(number // EPOCH_BLOCKS)
    cdef bytes data = bytes(seal_hash) + bytes(nonce)[::-1]
    cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef uint8_t final[96]
    cdef Node seed
    memset(&seed, 0, sizeof(seed))
    if PyBytes_GET_SIZE(data) != 40:
        raise ValueError("a seal is of a 32-byte hash and an 8-byte nonce")
    with nogil:
        keccak512(&seed, start, 5)
        memcpy(final, seed.b, NODE_BYTES)
        hashimoto(final + NODE_BYTES, &seed, cache.nodes, cache.count, cache.pages)
    mix = final[NODE_BYTES:96]
    keccak256(final, final, 96)
    return mix, final[:32]


def seal_hash(header):
    """Returns the hash of a header without mix hash and nonce, for which miners find a nonce."""
    cdef uint8_t digest[32]
    cdef bytes encoded
    items = rlp.decode(header.rlp())
    del items[MIX_HASH_FIELD:MIX_HASH_FIELD + 2]
    encoded = rlp.encode(items)
    keccak256(digest, <const uint8_t*>PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded))
    return digest[:32]


def validate_seal(header):
    """Raises `InvalidBlock` unless the seal of a header meets its difficulty."""
    mix, result = seal_of(seal_hash(header), header.nonce, header.number)
    if mix != header.mix_hash:
        raise InvalidBlock(header.number, "mix_hash", expected=mix, found=header.mix_hash)
    if int.from_bytes(result, "big") * header.difficulty > 1 << 256:
        raise InvalidBlock(
            header.number, "nonce", expected=f"work of {header.difficulty}", found=header.nonce
        )


fe_keccak_choose(IN_USE["keccak256"] != "portable")
