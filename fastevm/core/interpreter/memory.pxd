# The memory of a frame: charges its expansion and allocates it within the machine's memory.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.primitives.intrinsics cimport likely, unlikely
from fastevm.core.primitives.word cimport Word, word_is_zero
from fastevm.core.spec.constants cimport MEMORY_QUADRATIC_DIVISOR, MEMORY_WORD_COST


cdef enum:
    MEMORY_LIMIT = 0x7fffffff     # bytes for all frames of a machine; more is OUT_OF_MEMORY
    MEMORY_AHEAD = 1024           # bytes zeroed in advance, after the requested size
    MEMORY_ADDRESS_BITS = 36      # 2^36 bytes cost more gas than any block has: OUT_OF_GAS


# Allocates `size` bytes for the frame's memory and zeroes the new bytes. If memory is exhausted,
# sets the machine's status and returns False.
cdef bint memory_prepare(Frame* f, uint64_t size) noexcept nogil


# Grows the memory to `end` bytes and charges C_mem of the new size minus the gas already paid
# (Yellow Paper, appendix H.1). Returns the gas left, negative if there is not enough.
cdef inline int64_t memory_grow(Frame* f, uint64_t end, int64_t gas) noexcept nogil:
    cdef uint64_t words = (end + 31) >> 5
    cdef int64_t cost = <int64_t>(
        words * MEMORY_WORD_COST + words * words // MEMORY_QUADRATIC_DIVISOR
    )
    gas -= cost - f.memory_cost
    if unlikely(gas < 0):
        return gas
    if unlikely((words << 5) > f.memory_ready) and not memory_prepare(f, words << 5):
        return -1
    f.memory_size = words << 5
    f.memory_cost = cost
    return gas


cdef inline bint is_memory_address(const Word* at) noexcept nogil:
    return (at.d[1] | at.d[2] | at.d[3] | (at.d[0] >> (MEMORY_ADDRESS_BITS - 1))) == 0


# Grows the memory to hold `size` > 0 bytes at `offset`. Returns the gas left, negative if there is
# not enough.
cdef inline int64_t memory_use(
    Frame* f, const Word* offset, uint64_t size, int64_t gas
) noexcept nogil:
    if unlikely(not is_memory_address(offset)):
        return -1
    if likely(offset.d[0] + size <= f.memory_size):
        return gas
    return memory_grow(f, offset.d[0] + size, gas)


# Like `memory_use` with a size from the stack. Size 0 needs no memory at any offset.
cdef inline int64_t memory_span(
    Frame* f, const Word* offset, const Word* size, int64_t gas
) noexcept nogil:
    if unlikely(word_is_zero(size)):
        return gas
    if unlikely(not is_memory_address(size)):
        return -1
    return memory_use(f, offset, size.d[0], gas)
