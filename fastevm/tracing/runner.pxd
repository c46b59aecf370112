# A block whose transactions may be traced.
from fastevm.core.execution.transaction.transaction cimport Transaction
from fastevm.core.execution.transaction.transaction_result cimport TxResult
from fastevm.core.simulation.runner cimport Runner
from fastevm.tracing.observer cimport Observer


cdef class TracedRunner(Runner):
    cdef int run_traced(
        self, Transaction source, Observer observer, bint as_call, TxResult* result
    ) except -1
