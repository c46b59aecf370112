# The storage of ArbOS: spaces of one account, and the slots in them.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# The key of the root space is empty. The key of a child is keccak(key of the parent, id).
cdef struct Space:
    uint8_t key[32]
    size_t size               # size of the key: 0 or 32
    uint8_t page[32]          # the slot of keys 0 to 255, without its last byte
    bint has_page


cdef Address ARBOS_STATE
cdef Space ROOT, L1_PRICING, POSTERS, POSTER_SET, POSTER_INFO, L2_PRICING, CONSTRAINTS
cdef Space MULTI_GAS_CONSTRAINTS, MULTI_GAS_FEES, RETRYABLES, ADDRESS_TABLE, ADDRESS_INDEX, OWNERS
cdef Space SENDS, L1_BLOCKS, STYLUS_PARAMETERS, PROGRAMS, CACHE_MANAGERS, ACTIVATION_GAS, FEATURES
cdef Space NATIVE_TOKEN_OWNERS, FILTERERS

cdef void child_space(
    Space* out, const Space* parent, const uint8_t* id, size_t size
) noexcept nogil
cdef void slot_at(Word* out, const Space* space, uint64_t key) noexcept nogil
cdef void slot_of(Word* out, const Space* space, const Word* key) noexcept nogil
# Returns the slot with the hash for an L1 block number.
cdef void l1_hash_slot(Word* out, uint64_t number) noexcept nogil
