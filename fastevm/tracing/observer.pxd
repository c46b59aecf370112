# Executes a transaction on the traced loop and passes its records to an observer, without the GIL.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport StepTrace


# `trace` selects the records. With a limit of one byte, execution pauses before every op: `observe`
# then gets the machine as it is before this op, and the record of the previous op.
cdef class Observer:
    cdef StepTrace trace
    # why the observer stopped the execution
    cdef bint overflowed      # a limit was exceeded
    cdef bint starved         # out of memory
    cdef object error         # an exception was raised

    # Reads and clears the records. Returns False to stop the execution.
    cdef bint observe(self, Machine* m) noexcept nogil
    # Like `observe`, after the last op: `m` has no frame.
    cdef bint finish(self, Machine* m) noexcept nogil


# Passes records to two observers.
cdef class PairObserver(Observer):
    cdef Observer first
    cdef Observer second

    # Returns whether execution continues. If `went_on` is False, stores the reason of `child`.
    cdef bint heard(self, Observer child, bint went_on) noexcept nogil


# Like `transact` (core/execution/transaction/transact.pxd), with an observer. Also returns
# TX_CANCELLED if the observer stopped the execution.
cdef TxError transact_observed(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result,
    Observer observer,
) noexcept nogil
