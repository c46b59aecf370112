"""Runs a transaction on the traced loop and lets an observer read its records."""

from libc.stdint cimport uint64_t

from fastevm.execution.transact cimport TxRun, transact_abandon, transact_begin, transact_run
from fastevm.execution.transaction_data cimport Tx
from fastevm.execution.transaction_result cimport (
    TX_CANCELLED,
    TX_NEEDS_STATE,
    TX_PAUSED,
    TX_VALID,
    TxError,
    TxOptions,
    TxResult,
)
from fastevm.interpreter.machine cimport Machine
from fastevm.interpreter.status cimport SUSPENDED, TRACE_FULL
from fastevm.interpreter.tracer cimport StepTrace, tracer_clear


cdef class Observer:
    """Base of the observers; keeps nothing."""

    def __cinit__(self, *args: object, **options: object) -> None:
        self.trace = StepTrace(steps=False, calls=True)

    @property
    def kept(self) -> int:
        """Bytes of records and text that were kept."""
        return 0

    cdef bint observe(self, Machine* m) noexcept nogil:
        tracer_clear(self.trace.c)
        return True

    cdef bint finish(self, Machine* m) noexcept nogil:
        return self.observe(m)


cdef TxError run_to_end(
    Machine* m, TxRun* run, TxResult* result, Observer observer
) noexcept nogil:
    cdef TxError error = transact_run(m, run, result)
    while error == TX_PAUSED:
        if run.pause == TRACE_FULL:
            if not observer.observe(m):
                transact_abandon(m, run)
                return TX_CANCELLED
        elif run.pause != SUSPENDED:
            transact_abandon(m, run)
            return TX_NEEDS_STATE
        error = transact_run(m, run, result)
    return error


cdef TxError transact_observed(
    Machine* m, const Tx* tx, const TxOptions* options, uint64_t block_gas_left, TxResult* result,
    Observer observer,
) noexcept nogil:
    cdef TxRun run
    cdef TxError error
    tracer_clear(observer.trace.c)
    m.tracer = observer.trace.c
    error = transact_begin(m, tx, options, block_gas_left, &run, result)
    if error == TX_VALID:
        error = run_to_end(m, &run, result, observer)
        if error == TX_VALID and not observer.finish(m):
            error = TX_CANCELLED
    m.tracer = NULL
    m.transaction = NULL
    result.error = error
    return error
