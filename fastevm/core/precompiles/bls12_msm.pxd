# Multi-scalar multiplication on BLS12-381, precompiles 0x0c and 0x0e.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer


cdef PrecompileOutcome bls12_g1msm(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil
cdef PrecompileOutcome bls12_g2msm(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil
