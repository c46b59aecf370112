# Sums, pairings and maps over BLS12-381, precompiles 0x0b, 0x0d and 0x0f to 0x11.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer


cdef PrecompileOutcome bls12_g1add(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
cdef PrecompileOutcome bls12_g2add(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
cdef PrecompileOutcome bls12_pairing(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil
cdef PrecompileOutcome bls12_map_fp_to_g1(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
cdef PrecompileOutcome bls12_map_fp2_to_g2(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
