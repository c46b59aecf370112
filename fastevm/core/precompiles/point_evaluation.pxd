# Verifies a KZG proof of a blob's value at a point, precompile 0x0a.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer


cdef PrecompileOutcome point_evaluation(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
