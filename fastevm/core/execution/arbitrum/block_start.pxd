# The storage writes of ArbOS at the start of a block.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.state.world cimport World


# Stores a hash for each L1 block that ArbOS has not seen yet, derived from `parent_hash`, the hash
# of the parent Arbitrum block. `l1_number` is the L1 block number of the Arbitrum block. Returns
# SYSTEM_DONE, or an outcome >= SYSTEM_NEEDS_STATE.
cdef SystemOutcome record_l1_block(
    World* w, uint64_t l1_number, uint64_t arbos_version, const uint8_t* parent_hash
) noexcept nogil
