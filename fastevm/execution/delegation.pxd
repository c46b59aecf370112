# Set-code authorizations, applied by a transaction of type 4 before it runs (EIP-7702).
from libc.stdint cimport uint64_t

from fastevm.execution.transaction_data cimport Tx
from fastevm.spec.schedule cimport Schedule
from fastevm.state.world cimport World


# Process every authorization in order; invalid ones are skipped. False: see world.need.
cdef bint apply_authorizations(
    World* w, const Schedule* schedule, uint64_t chain_id, const Tx* tx
) noexcept nogil
