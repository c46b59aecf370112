# Runs a transaction on the traced loop and lets an observer read its records, without the GIL.
from libc.stdint cimport uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport StepTrace


# `trace` says what is recorded. With a limit of one byte the run stops before every op: `observe`
# then sees the machine as the op will find it, and the op before it in the records.
cdef class Observer:
    cdef StepTrace trace
    # why it stopped the run
    cdef bint overflowed      # a limit was reached
    cdef bint starved         # out of memory
    cdef object error         # an exception was raised

    # Read and clear the records; False stops the run.
    cdef bint observe(self, Machine* m) noexcept nogil
    # The same after the last op; `m` has no frame left.
    cdef bint finish(self, Machine* m) noexcept nogil


# Hands records to two observers.
cdef class PairObserver(Observer):
    cdef Observer first
    cdef Observer second

    # Whether the run goes on after what one of them made of the records; why not, is kept.
    cdef bint heard(self, Observer child, bint went_on) noexcept nogil


# As `transact` (execution/transact.pxd). TX_CANCELLED also if the observer stopped the run.
cdef TxError transact_observed(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result,
    Observer observer,
) noexcept nogil
