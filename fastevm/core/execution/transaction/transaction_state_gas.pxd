# State gas of a transaction (EIP-8037): intrinsic part, charges before the first frame, and the
# block's counts.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transact cimport TxRun
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.interpreter.machine cimport Machine


# Check the transaction's gas in both dimensions against its limits and the block's remaining gas.
# `regular_left`: regular gas that the block has left.
cdef TxError check_two_dimensions(
    const Machine* m, TxRun* run, uint64_t regular_left, TxResult* result
) noexcept nogil
# Returns whether the block has as much gas left as the transaction's result requires.
cdef TxError check_room(
    uint64_t limit, uint64_t regular_left, uint64_t state_used, TxResult* result
) noexcept nogil
# Split the gas left after the intrinsic gas into gas and a reservoir.
cdef void split_gas(const Machine* m, TxRun* run) noexcept nogil
# Amsterdam: charge for the account that a creation or a transfer creates, and for accessing the
# recipient's delegate. Returns False if state is missing: see world.need. `run.upfront.ran_out`:
# the charge could not be paid.
cdef bint pay_for_recipient(Machine* m, TxRun* run, TxResult* result) noexcept nogil
# Compute the gas used in both dimensions, before and after the refund.
cdef void refund_two_dimensions(Machine* m, TxRun* run, TxResult* result) noexcept nogil
