# The storage slots that an execution has read or written, sorted by contract and key.
from libc.stdint cimport uint8_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef struct SeenSlot:
    uint8_t location[52]        # address and key, big-endian; the array is sorted by it
    uint8_t value[32]


cdef struct SeenStorage:
    SeenSlot* slots          # sorted by location
    size_t count
    size_t capacity


# Adds or replaces the value of a slot. Returns False if memory is exhausted.
cdef bint seen_put(
    SeenStorage* seen, const Address* contract, const Word* key, const Word* value
) noexcept nogil
# Returns the index of the contract's first slot, or of the next contract's if there is none.
cdef size_t seen_first(const SeenStorage* seen, const Address* contract) noexcept nogil
cdef bint seen_belongs(const SeenSlot* slot, const Address* contract) noexcept nogil
cdef void seen_free(SeenStorage* seen) noexcept nogil
