"""Lets observers read the records of executions on an ``EVM``."""

from cpython.pythread cimport PyThread_get_thread_ident

from fastevm.evm.machine cimport EVM
from fastevm.evm.hook_calls cimport Watch
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport tracer_clear
from fastevm.tracing.observer cimport Observer

from collections.abc import Callable, Mapping, Sequence

from fastevm.errors import ResourceLimitError
from fastevm.evm.base import IN_USE
from fastevm.tracing.observer import observer_of
from fastevm.tracing.values import TRACE_BYTES_LIMIT


cdef object observer_fault(Observer observer):
    if observer.error is not None:
        return observer.error
    if observer.starved:
        return MemoryError("no memory for a trace")
    if observer.overflowed:
        return ResourceLimitError(
            "trace",
            f"the trace exceeds {TRACE_BYTES_LIMIT} bytes: keep the first steps with"
            " trace={'steps': {'limit': BYTES}}, or read the run with evm.hooks"
        )
    return None


cdef class ObserverWatch(Watch):
    """Observes the executions of an ``EVM``. ``make()`` returns an observer for each attempt."""

    def __init__(self, make: Callable[[], Observer]) -> None:
        self.make = make

    cdef int begin(self, Machine* m) except -1:
        cdef Observer found = self.make()
        if found is None:
            raise TypeError("no observer")
        self.observer = found
        tracer_clear(found.trace.c)
        m.tracer = found.trace.c
        return 0

    cdef int read(self, Machine* m) except -1:
        cdef Observer observer = self.observer
        cdef bint went_on
        with nogil:
            went_on = observer.observe(m)
        if not went_on:
            raise observer_fault(observer)
        return 0

    cdef int finish(self, Machine* m) except -1:
        cdef Observer observer = self.observer
        cdef bint went_on
        with nogil:
            went_on = observer.finish(m)
        if not went_on:
            raise observer_fault(observer)
        return 0


cdef class CallWatch(ObserverWatch):
    """Observes the executions of one call of `watched`.

    Another thread must not run the machine in between: its execution would write to the records
    that this call reads.
    """

    def __init__(self, make: Callable[[], Observer]) -> None:
        ObserverWatch.__init__(self, make)
        self.thread = PyThread_get_thread_ident()

    cdef int begin(self, Machine* m) except -1:
        if PyThread_get_thread_ident() != self.thread:
            raise RuntimeError(IN_USE)
        return ObserverWatch.begin(self, m)


def watched(
    EVM evm not None, make: Callable[[], Observer], run: Callable[..., object],
    args: Sequence[object], options: Mapping[str, object],
) -> object:
    """Returns ``run(*args, **options)``, an execution of ``evm`` that ``make()`` and hooks observe.

    Raises RuntimeError if another call observes the machine.
    """
    cdef EVM machine = evm
    cdef Watch usual
    cdef Watch watch
    machine.check_idle()
    usual = machine.watch
    if isinstance(usual, CallWatch):
        raise RuntimeError(IN_USE)
    if isinstance(usual, ObserverWatch):
        hooks = (<ObserverWatch>usual).make
        watch = CallWatch(lambda: observer_of([hooks(), make()]))
    else:
        watch = CallWatch(make)
    machine.watch = watch
    try:
        return run(*args, **options)
    finally:
        machine.watch = usual
