"""Several observers of one run: each gets the records that it asked for."""

from fastevm.interpreter.machine cimport Machine
from fastevm.interpreter.tracer cimport (
    TRACE_STEP,
    StepTrace,
    TraceHead,
    Tracer,
    tracer_clear,
)
from fastevm.primitives.buffer cimport buffer_append
from fastevm.tracing.observer cimport Observer

from collections.abc import Sequence
from functools import reduce


# Append the records that `to` records itself. False: out of memory.
cdef bint share(const Tracer* source, Tracer* to) noexcept nogil:
    cdef size_t at = 0
    cdef const TraceHead* head
    while at < source.records.size:
        head = <const TraceHead*>(source.records.bytes + at)
        if to.steps if head.kind == TRACE_STEP else to.calls:
            if not buffer_append(&to.records, head, head.size):
                return False
        at += head.size
    return True


cdef class PairObserver(Observer):
    """Hands records to two observers. The run stops before every op if one of them wants that, and
    ends when one of them ends it."""

    def __init__(self, Observer first not None, Observer second not None) -> None:
        cdef const Tracer* a = first.trace.c
        cdef const Tracer* b = second.trace.c
        self.first, self.second = first, second
        self.trace = StepTrace(
            steps=a.steps or b.steps, calls=a.calls or b.calls,
            stack_words=max(a.stack_words if a.steps else 0, b.stack_words if b.steps else 0),
            memory=a.memory or b.memory, return_data=a.return_data or b.return_data,
            limit=min(a.limit, b.limit),
        )

    @property
    def kept(self) -> int:
        """Bytes of records and text that both keep."""
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
    """One observer for several; for none one that keeps nothing."""
    return reduce(PairObserver, observers) if observers else Observer()
