# RIPEMD-160, precompile 0x03.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer


cdef PrecompileOutcome ripemd160(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
