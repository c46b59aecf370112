# State gas of a transaction (EIP-8037): the intrinsic part, charges before the first frame, and the
# gas that the block counts.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transact cimport TxRun
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.interpreter.machine cimport Machine


# Check the transaction's gas in both dimensions against its gas limit and the remaining gas of the
# block. `regular_left`: regular gas that the block has left.
cdef TxError check_two_dimensions(
    const Machine* m, TxRun* run, uint64_t regular_left, TxResult* result
) noexcept nogil
# Check that the block has enough gas left for `result`, in both gas dimensions. `limit` is the gas
# limit of the block. Returns TX_VALID or TX_BLOCK_GAS.
cdef TxError check_room(
    uint64_t limit, uint64_t regular_left, uint64_t state_used, TxResult* result
) noexcept nogil
# Split the gas left after the intrinsic gas into gas and a reservoir.
cdef void split_gas(const Machine* m, TxRun* run) noexcept nogil
# Amsterdam: charge for the account that a creation or a transfer creates, and for accessing the
# recipient's delegate. Returns False if state is missing: see world.need. Sets
# `run.upfront.ran_out` if the gas does not suffice.
cdef bint pay_for_recipient(Machine* m, TxRun* run, TxResult* result) noexcept nogil
# Compute the gas used in both dimensions, before and after the refund.
cdef void refund_two_dimensions(Machine* m, TxRun* run, TxResult* result) noexcept nogil
