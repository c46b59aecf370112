# A block whose transactions may be traced.
from fastevm.execution.outcome cimport TxResult
from fastevm.execution.transaction cimport Transaction
from fastevm.simulate.engine.runner cimport Runner
from fastevm.tracing.observer cimport Observer


cdef class TracedRunner(Runner):
    cdef int run_traced(
        self, Transaction source, Observer observer, bint as_call, TxResult* result
    ) except -1
