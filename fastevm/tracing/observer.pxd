# Runs a transaction on the traced twin of the loop and shows an observer what happens, without the
# GIL.
from libc.stdint cimport uint64_t

from fastevm.execution.outcome cimport TxError, TxOptions, TxResult
from fastevm.execution.tx cimport Tx
from fastevm.interpreter.machine cimport Machine
from fastevm.interpreter.tracer cimport StepTrace


# Sees a run. `trace` says what is recorded; with a limit of one byte the run stops before every op,
# so that `observe` finds the machine as the op will find it and the op before in the records.
cdef class Observer:
    cdef StepTrace trace
    cdef bint overflowed      # it gave up because a named limit was reached
    cdef bint starved         # or for lack of memory
    cdef object error         # or because this was raised

    # Read and clear the records; False stops the run.
    cdef bint observe(self, Machine* m) noexcept nogil
    # The same after the last op; `m` has no frame any more.
    cdef bint finish(self, Machine* m) noexcept nogil


# As `transact` (execution/transact.pxd). TX_CANCELLED also when the observer gave up.
cdef TxError transact_observed(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result,
    Observer observer,
) noexcept nogil
