"""Copies data, precompile 0x04 (Yellow Paper, appendix E)."""

from libc.string cimport memcpy

from fastevm.core.precompiles.common cimport charge, cost_by_words, size_output
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)


cdef enum:
    BASE_COST = 15
    WORD_COST = 3


cdef PrecompileOutcome identity(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    if not charge(gas, cost_by_words(BASE_COST, WORD_COST, size)):
        return PRECOMPILE_OUT_OF_GAS
    if not size_output(output, size):
        return PRECOMPILE_NO_MEMORY
    if size != 0:
        memcpy(output.bytes, data, size)
    return PRECOMPILE_OK
