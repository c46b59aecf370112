# Set-code authorizations, applied by a transaction of type 4 before it runs (EIP-7702).
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.world cimport World


# What a transaction has before its first frame, in forks with state gas.
cdef struct UpfrontGas:
    int64_t gas
    int64_t reservoir
    int64_t spilled            # state gas that `gas` paid
    int64_t byte_price
    bint ran_out               # a charge could not be paid


# Pay for something before the first frame; once that was not possible, nothing is paid any more.
cdef void pay_upfront(UpfrontGas* u, int64_t regular, int64_t state) noexcept nogil
# Process every authorization in order; invalid ones are skipped. `upfront` pays
# in forks with state gas. False: see world.need.
cdef bint apply_authorizations(
    World* w, const Schedule* schedule, uint64_t chain_id, const Tx* tx, UpfrontGas* upfront
) noexcept nogil
