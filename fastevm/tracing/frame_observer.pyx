"""An observer that passes the records of frames entered and left to Python, in large lists."""

from collections.abc import Callable
from typing import Any

from fastevm.interpreter.machine cimport Machine
from fastevm.interpreter.tracer cimport StepTrace
from fastevm.tracing.observer cimport Observer

from fastevm.tracing.values import TRACE_BYTES_LIMIT


cdef enum:
    RECORDS_AT_ONCE = 4 * 1024 * 1024      # bytes


cdef class FrameObserver(Observer):
    """Calls ``sink`` with lists of records (see `StepTrace.drain`).

    ``budget``: bytes of records after which the run stops; ``overflowed`` is set then.
    """
    cdef object sink
    cdef size_t budget
    cdef size_t used

    def __init__(
        self, sink: Callable[[list[dict[str, Any]]], None], *, size_t budget=TRACE_BYTES_LIMIT
    ) -> None:
        self.trace = StepTrace(steps=False, calls=True, limit=RECORDS_AT_ONCE)
        self.sink = sink
        self.budget = budget
        self.used = 0

    @property
    def kept(self) -> int:
        """Bytes of records taken so far."""
        return self.used

    cdef bint observe(self, Machine* m) noexcept nogil:
        self.used = self.used + self.trace.c.records.size
        if self.used > self.budget:
            self.overflowed = True
            return False
        with gil:
            try:
                self.sink(self.trace.drain())
                return True
            except Exception as error:
                self.error = error
                return False
