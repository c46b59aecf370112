# Addition, multiplication and pairing on BN254, precompiles 0x06 to 0x08.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.spec.schedule cimport Schedule


cdef PrecompileOutcome bn254_add(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
cdef PrecompileOutcome bn254_mul(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
cdef PrecompileOutcome bn254_pairing(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
    const int* cancel,
) noexcept nogil
