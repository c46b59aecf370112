"""The memory of all frames: one buffer, which may move when it grows."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.status cimport OUT_OF_MEMORY
from fastevm.core.primitives.buffer cimport buffer_reserve


# Corrects the frames' pointers after the buffer has moved: those to their memory, and those to call
# data in the caller's memory. `before`: the old address of the buffer.
cdef void memory_moved(Machine* m, const uint8_t* before) noexcept nogil:
    cdef uint32_t i
    cdef Frame* f
    for i in range(m.depth):
        f = &m.frames[i]
        if f.data_in_memory:
            f.data = m.memory.bytes + (f.data - before)
        f.memory = m.memory.bytes + f.memory_start


cdef bint memory_prepare(Frame* f, uint64_t size) noexcept nogil:
    cdef Machine* m = f.machine
    cdef const uint8_t* before = m.memory.bytes
    cdef uint64_t ready = size + MEMORY_AHEAD
    cdef uint64_t end = f.memory_start + ready
    if end > MEMORY_LIMIT or not buffer_reserve(&m.memory, end):
        m.status = OUT_OF_MEMORY
        return False
    if m.memory.bytes != before:
        memory_moved(m, before)
    memset(f.memory + f.memory_ready, 0, ready - f.memory_ready)
    f.memory_ready = ready
    return True
