# What ArbOS stores at the start of a block.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.state.world cimport World


# Records a block of L1 if it is newer than the last one. The values of the skipped numbers follow
# from `parent_hash`, that of the Arbitrum block before. Returns SYSTEM_DONE, or an outcome >=
# SYSTEM_NEEDS_STATE.
cdef SystemOutcome record_l1_block(
    World* w, uint64_t l1_number, uint64_t arbos_version, const uint8_t* parent_hash
) noexcept nogil
