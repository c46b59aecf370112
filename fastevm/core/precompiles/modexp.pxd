# Modular exponentiation, precompile 0x05.
from libc.stdint cimport int64_t, uint8_t

from fastevm.core.precompiles.registry cimport PrecompileOutcome
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.spec.schedule cimport Schedule


cdef PrecompileOutcome modexp(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil
