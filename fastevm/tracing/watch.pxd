# Observes the executions of an ``EVM``.
from fastevm.evm.hook_calls cimport Watch
from fastevm.tracing.observer cimport Observer


cdef class ObserverWatch(Watch):
    cdef object make          # makes an observer for every attempt of an execution
    cdef Observer observer    # of the last attempt


# The exception for the reason why an observer stopped; None if it did not stop.
cdef object observer_fault(Observer observer)
