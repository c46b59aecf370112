# The table of precompiles: look-up by address, and execution without the GIL.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.spec.schedule cimport Schedule


cdef enum PrecompileOutcome:
    PRECOMPILE_OK = 0
    PRECOMPILE_OUT_OF_GAS = 1
    PRECOMPILE_INVALID = 2    # bad input: the call fails and consumes all its gas
    PRECOMPILE_NO_MEMORY = 3
    PRECOMPILE_CANCELLED = 4  # the host stopped the execution: nothing was computed


# Returns the number of the precompile at the address in this fork (0x01..0x11; 0x12 is P256VERIFY
# at 0x100), or 0 if there is none.
cdef uint32_t precompile_at(const Schedule* schedule, const Address* address) noexcept nogil

# Runs the precompile `number` (see precompile_at): charges `gas[0]` and writes the output, which
# may be empty. Precompiles that may take more than 10 ms check `*cancel`, a `CancelRequest`, every
# few milliseconds.
cdef PrecompileOutcome precompile_run(
    uint32_t number, const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas,
    Buffer* output, const int* cancel,
) noexcept nogil
