# Set-code authorizations, applied by a transaction of type 4 before it runs (EIP-7702).
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.world cimport World


# The gas that pays for the charges before the first frame, in forks with state gas.
cdef struct UpfrontGas:
    int64_t gas
    int64_t reservoir
    int64_t spilled            # state gas that was paid from `gas`
    int64_t byte_price         # gas per byte of new state
    bint ran_out               # a charge exceeded the gas


# Charge regular gas and state gas before the first frame. After a charge that exceeded the gas,
# further calls charge nothing.
cdef void pay_upfront(UpfrontGas* u, int64_t regular, int64_t state) noexcept nogil
# Process all authorizations in order; invalid ones are skipped. In forks with state gas, `upfront`
# pays for them. Returns False if state is missing: see world.need.
cdef bint apply_authorizations(
    World* w, const Schedule* schedule, uint64_t chain_id, const Tx* tx, UpfrontGas* upfront
) noexcept nogil
