# Shared by all precompiles: charging gas, reading zero-padded operands, sizing the output.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.buffer cimport Buffer, buffer_reserve
from fastevm.core.primitives.intrinsics cimport u128


# Charges `cost` gas. Returns False and charges nothing if there is not enough gas.
cdef inline bint charge(int64_t* gas, uint64_t cost) noexcept nogil:
    if gas[0] < 0 or cost > <uint64_t>gas[0]:
        return False
    gas[0] -= <int64_t>cost
    return True


# Products and sums of prices saturate at 2^64 - 1, which exceeds any gas.
cdef inline uint64_t saturating_mul(uint64_t a, uint64_t b) noexcept nogil:
    cdef u128 product = <u128>a * <u128>b
    return ~<uint64_t>0 if <uint64_t>(product >> 64) != 0 else <uint64_t>product


cdef inline uint64_t saturating_add(uint64_t a, uint64_t b) noexcept nogil:
    return ~<uint64_t>0 if a + b < a else a + b


# Returns `base` plus `per_word` for each started 32-byte word, in gas.
cdef inline uint64_t cost_by_words(uint64_t base, uint64_t per_word, size_t size) noexcept nogil:
    cdef uint64_t words = size // 32 + (size % 32 != 0)
    return saturating_add(base, saturating_mul(per_word, words))


# Copies `count` bytes of the data from `offset` on. Bytes past the end of the data are zero.
cdef inline void read_padded(
    uint8_t* out, size_t count, const uint8_t* data, size_t size, size_t offset,
) noexcept nogil:
    cdef size_t there = 0
    if offset < size:
        there = size - offset
        if there > count:
            there = count
        memcpy(out, data + offset, there)
    if there < count:
        memset(out + there, 0, count - there)


# Sets the size of the output. Returns False if memory is exhausted.
cdef inline bint size_output(Buffer* output, size_t size) noexcept nogil:
    if not buffer_reserve(output, size):
        return False
    output.size = size
    return True
