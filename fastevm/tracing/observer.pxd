# Executes a transaction on the traced loop and passes its records to an observer, without the GIL.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport StepTrace


# `trace` selects the records. With a limit of one byte execution stops before every op: `observe`
# then sees the machine as the op will find it, and the previous op in the records.
cdef class Observer:
    cdef StepTrace trace
    # why it stopped the execution
    cdef bint overflowed      # a limit was exceeded
    cdef bint starved         # out of memory
    cdef object error         # an exception was raised

    # Reads and clears the records. False stops the execution.
    cdef bint observe(self, Machine* m) noexcept nogil
    # The same after the last op, when `m` has no frame.
    cdef bint finish(self, Machine* m) noexcept nogil


# Passes records to two observers.
cdef class PairObserver(Observer):
    cdef Observer first
    cdef Observer second

    # Whether execution continues after an observer's answer; stores the reason if not.
    cdef bint heard(self, Observer child, bint went_on) noexcept nogil


# Like `transact` (execution/transact.pxd). Also TX_CANCELLED if the observer stopped the execution.
cdef TxError transact_observed(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result,
    Observer observer,
) noexcept nogil
