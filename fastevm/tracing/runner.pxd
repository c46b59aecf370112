# A block whose transactions may be traced.
from fastevm.execution.transaction cimport Transaction
from fastevm.execution.transaction_result cimport TxResult
from fastevm.simulate.engine.runner cimport Runner
from fastevm.tracing.observer cimport Observer


cdef class TracedRunner(Runner):
    cdef int run_traced(
        self, Transaction source, Observer observer, bint as_call, TxResult* result
    ) except -1
