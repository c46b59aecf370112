# Observes the executions of an ``EVM``.
from fastevm.evm.hook_calls cimport Watch
from fastevm.tracing.observer cimport Observer


cdef class ObserverWatch(Watch):
    cdef object make          # function that creates an observer for each attempt of an execution
    cdef Observer observer    # the observer of the last attempt


# Observes the executions of one call of `watched`, on the thread of this call.
cdef class CallWatch(ObserverWatch):
    cdef unsigned long thread


# Returns the exception for the reason why an observer stopped the execution; None if it ran to its
# end.
cdef object observer_fault(Observer observer)
