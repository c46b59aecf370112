# State gas of a transaction (EIP-8037): its intrinsic part, what is paid before the first frame,
# and what the block counts.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transact cimport TxRun
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxResult
from fastevm.core.interpreter.machine cimport Machine


# The transaction's gas in both dimensions against its limits and the room in the block.
# `regular_left`: what the block has left of regular gas.
cdef TxError check_two_dimensions(
    const Machine* m, TxRun* run, uint64_t regular_left, TxResult* result
) noexcept nogil
# Whether the block has left what the result of a transaction says that it needs.
cdef TxError check_room(
    uint64_t limit, uint64_t regular_left, uint64_t state_used, TxResult* result
) noexcept nogil
# What the gas limit leaves after the intrinsic gas becomes gas and a reservoir.
cdef void split_gas(const Machine* m, TxRun* run) noexcept nogil
# Amsterdam: the account that a creation or a transfer brings into being, and the access of the
# recipient's delegate. False: see world.need. `run.upfront.ran_out`: it could not be paid.
cdef bint pay_for_recipient(Machine* m, TxRun* run, TxResult* result) noexcept nogil
# What was used in both dimensions, before and after the refund.
cdef void refund_two_dimensions(Machine* m, TxRun* run, TxResult* result) noexcept nogil
