"""Executes a transaction on the traced loop and passes its records to one or more observers."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.transact cimport TxRun, transact_abandon, transact_begin, transact_run
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_CANCELLED,
    TX_NEEDS_STATE,
    TX_PAUSED,
    TX_VALID,
    TxError,
    TxOptions,
    TxResult,
)
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.status cimport SUSPENDED, TRACE_FULL
from fastevm.core.interpreter.tracer cimport (
    TRACE_ACCESS,
    TRACE_STEP,
    StepTrace,
    TraceHead,
    Tracer,
    tracer_clear,
)
from fastevm.core.primitives.buffer cimport buffer_append

from collections.abc import Sequence
from functools import reduce


cdef class Observer:
    """Base class of observers. By itself it records nothing."""

    def __cinit__(self, *args: object, **options: object) -> None:
        self.trace = StepTrace(steps=False, calls=True)

    @property
    def kept(self) -> int:
        """Size of the stored records and text in bytes."""
        return 0

    cdef bint observe(self, Machine* m) noexcept nogil:
        tracer_clear(self.trace.c)
        return True

    cdef bint finish(self, Machine* m) noexcept nogil:
        return self.observe(m)


cdef bint wants(const Tracer* tracer, uint32_t kind) noexcept nogil:
    if kind == TRACE_STEP:
        return tracer.steps
    return tracer.accesses if kind == TRACE_ACCESS else tracer.calls


# Copies the records that `to` needs from `source`. Returns False if memory is exhausted.
cdef bint share(const Tracer* source, Tracer* to) noexcept nogil:
    cdef size_t at = 0
    cdef const TraceHead* head
    while at < source.records.size:
        head = <const TraceHead*>(source.records.bytes + at)
        if wants(to, head.kind):
            if not buffer_append(&to.records, head, head.size):
                return False
        at += head.size
    return True


cdef class PairObserver(Observer):
    """Passes records to two observers.

    If one of the two needs it, execution pauses before every op. If one ends execution, it ends.
    """

    def __init__(self, Observer first not None, Observer second not None) -> None:
        cdef const Tracer* a = first.trace.c
        cdef const Tracer* b = second.trace.c
        self.first, self.second = first, second
        self.trace = StepTrace(
            steps=a.steps or b.steps, calls=a.calls or b.calls,
            stack_words=max(a.stack_words if a.steps else 0, b.stack_words if b.steps else 0),
            memory=a.memory or b.memory, return_data=a.return_data or b.return_data,
            accesses=a.accesses or b.accesses,
            limit=min(a.limit, b.limit),
        )

    @property
    def kept(self) -> int:
        """Size of the records and text that both observers store, in bytes."""
        return self.first.kept + self.second.kept

    cdef bint observe(self, Machine* m) noexcept nogil:
        cdef Tracer* own = self.trace.c
        if not (share(own, self.first.trace.c) and share(own, self.second.trace.c)):
            self.starved = True
            return False
        tracer_clear(own)
        if not self.heard(self.first, self.first.observe(m)):
            return False
        return self.heard(self.second, self.second.observe(m))

    cdef bint finish(self, Machine* m) noexcept nogil:
        cdef Tracer* own = self.trace.c
        if not (share(own, self.first.trace.c) and share(own, self.second.trace.c)):
            self.starved = True
            return False
        tracer_clear(own)
        if not self.heard(self.first, self.first.finish(m)):
            return False
        return self.heard(self.second, self.second.finish(m))

    cdef bint heard(self, Observer child, bint went_on) noexcept nogil:
        if went_on:
            return True
        with gil:
            self.error = child.error
        self.overflowed, self.starved = child.overflowed, child.starved
        return False


def observer_of(observers: Sequence[Observer]) -> Observer:
    """Combines several observers; without any, returns one that records nothing."""
    return reduce(PairObserver, observers) if observers else Observer()


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
    memset(&run, 0, sizeof(run))
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
