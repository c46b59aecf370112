# Executes a transaction in a world: validate, buy gas, run, refund, pay (Yellow Paper, section 6).
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.execution.transaction.delegation cimport UpfrontGas
from fastevm.core.execution.transaction.intrinsic cimport IntrinsicGas
from fastevm.core.execution.op_stack.l1_fees cimport L1Fees
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_BLOCK_GAS, TX_CANCELLED, TX_NEEDS_STATE, TX_OUT_OF_MEMORY, TX_PAUSED, TX_VALID, TxError,
    TxOptions, TxResult,
)
from fastevm.core.interpreter.machine cimport Machine, TransactionContext
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport Checkpoint


# The state of a transaction between transact_begin and the last transact_run.
cdef struct TxRun:
    const Tx* tx
    TxOptions options
    TransactionContext context
    IntrinsicGas intrinsic
    Account* sender
    Account* coinbase
    Checkpoint start
    uint64_t first_index       # world.log_index at the start
    int64_t frame_gas          # gas that the first frame starts with
    # --- in forks with state gas ---
    int64_t reservoir          # part of the gas limit that pays for state only
    UpfrontGas upfront         # gas of both kinds left when the message starts
    int64_t recipient_charge   # state gas paid for the account that the message creates
    Word price                 # wei per gas paid by the sender
    Word tip                   # wei per gas paid to the coinbase
    bint pays_coinbase
    bint is_deposit
    bint never_ran  # a deposit whose message could not start; it uses its whole gas limit
    bint pays_l1_fee
    L1Fees l1_fees             # valid if pays_l1_fee
    Word l1_fee                # L1 data fee in wei
    Word operator_fee          # operator fee in wei for the whole gas limit
    Status pause               # after TX_PAUSED: a request defined in status.pxd


# Execute a transaction. The caller sets `m.world`, `m.schedule` and `m.block`, but not
# `m.transaction`. A refused transaction changes nothing. If state is missing, everything is rolled
# back and the result is TX_NEEDS_STATE: satisfy world.need and call again. The output stays in
# `m.output`, the logs in `m.world.logs`. `options` may be NULL for a transaction of a block.
cdef TxError transact(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result
) noexcept nogil

# The steps of `transact`, for callers that trace, or that fetch state without a restart. `run` and
# `tx` must not move until transact_run returns something else than TX_PAUSED. After TX_PAUSED,
# satisfy the request in run.pause and call transact_run again, or call transact_abandon.
cdef TxError transact_begin(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxRun* run,
    TxResult* result
) noexcept nogil
cdef TxError transact_run(Machine* m, TxRun* run, TxResult* result) noexcept nogil
# Roll back to the state before transact_begin.
cdef void transact_abandon(Machine* m, TxRun* run) noexcept nogil
