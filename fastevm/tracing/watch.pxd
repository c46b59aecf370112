# An observer of the runs of an ``EVM``.
from fastevm.evm.hook_calls cimport Watch
from fastevm.tracing.observer cimport Observer


cdef class ObserverWatch(Watch):
    cdef object make          # an observer for every attempt at a run
    cdef Observer observer    # of the last one


# The exception for what stopped an observer; None if nothing did.
cdef object observer_fault(Observer observer)
