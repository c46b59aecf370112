# The compression function of BLAKE2b, precompile 0x09.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer


cdef PrecompileOutcome blake2f(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil
