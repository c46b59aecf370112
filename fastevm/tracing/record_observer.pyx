"""An observer that keeps all records of an execution, so that they can be read afterwards."""

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport StepTrace
from fastevm.tracing.observer cimport Observer

from collections.abc import Iterator
from typing import Any


READ_AT_ONCE = 1_024  # records converted to Python values at a time


cdef class RecordObserver(Observer):
    """Keeps frames and, with ``steps``, every step with its whole stack.

    ``memory``: whether steps include the memory before the op. ``budget``: maximum size of the
    records in bytes; the execution ends beyond it.
    """

    def __init__(self, *, bint steps, bint memory, size_t budget) -> None:
        self.trace = StepTrace(steps=steps, calls=True, memory=memory, limit=budget)

    @property
    def kept(self) -> int:
        """Size of the records in bytes."""
        return self.trace.c.records.size

    cdef bint observe(self, Machine* m) noexcept nogil:
        self.overflowed = True
        return False

    cdef bint finish(self, Machine* m) noexcept nogil:
        return True

    def records(self) -> Iterator[dict[str, Any]]:
        """Yields the records in order, in the form of `StepTrace.drain`."""
        cdef size_t at = 0
        while at < self.trace.c.records.size:
            found, at = self.trace.read(at, READ_AT_ONCE)
            yield from found
