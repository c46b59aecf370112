"""SHA-256, precompile 0x02 (Yellow Paper, appendix E)."""

from fastevm.core.precompiles.common cimport charge, cost_by_words, size_output
from fastevm.core.primitives.native.blst cimport blst
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)


cdef enum:
    BASE_COST = 60
    WORD_COST = 12


cdef PrecompileOutcome sha256(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    if not charge(gas, cost_by_words(BASE_COST, WORD_COST, size)):
        return PRECOMPILE_OUT_OF_GAS
    if not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    blst.sha256(output.bytes, data, size)
    return PRECOMPILE_OK
