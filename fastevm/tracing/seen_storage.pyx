"""The storage slots that an execution has read or written, sorted by contract and key."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memcpy, memmove, memset

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word, word_store


cdef enum:
    LOCATION_SIZE = 52


cdef size_t lower_bound(const SeenStorage* seen, const uint8_t* location) noexcept nogil:
    cdef size_t low = 0, high = seen.count, middle
    while low < high:
        middle = (low + high) >> 1
        if memcmp(seen.slots[middle].location, location, LOCATION_SIZE) < 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef bint grow(SeenStorage* seen) noexcept nogil:
    cdef size_t capacity = seen.capacity * 2 if seen.capacity else 16
    cdef SeenSlot* slots = <SeenSlot*>PyMem_RawRealloc(seen.slots, capacity * sizeof(SeenSlot))
    if slots == NULL:
        return False
    seen.slots = slots
    seen.capacity = capacity
    return True


cdef bint seen_put(
    SeenStorage* seen, const Address* contract, const Word* key, const Word* value
) noexcept nogil:
    cdef uint8_t location[LOCATION_SIZE]
    cdef SeenSlot* slot
    cdef size_t at
    memcpy(location, contract.b, 20)
    word_store(location + 20, key)
    at = lower_bound(seen, location)
    if at == seen.count or memcmp(seen.slots[at].location, location, LOCATION_SIZE) != 0:
        if seen.count == seen.capacity and not grow(seen):
            return False
        slot = seen.slots + at
        memmove(slot + 1, slot, (seen.count - at) * sizeof(SeenSlot))
        memcpy(slot.location, location, LOCATION_SIZE)
        seen.count += 1
    word_store(seen.slots[at].value, value)
    return True


cdef size_t seen_first(const SeenStorage* seen, const Address* contract) noexcept nogil:
    cdef uint8_t location[LOCATION_SIZE]
    memset(location, 0, LOCATION_SIZE)
    memcpy(location, contract.b, 20)
    return lower_bound(seen, location)


cdef bint seen_belongs(const SeenSlot* slot, const Address* contract) noexcept nogil:
    return memcmp(slot.location, contract.b, 20) == 0


cdef void seen_free(SeenStorage* seen) noexcept nogil:
    PyMem_RawFree(seen.slots)
    memset(seen, 0, sizeof(SeenStorage))
