# One block of simulated calls: a block builder with overrides and relaxed rules.
from fastevm.core.execution.block.block cimport BlockBuilder
from fastevm.core.execution.transaction.transaction_result cimport TxResult
from fastevm.core.simulation.deadline cimport Deadline
from fastevm.core.simulation.overrides cimport PrecompileMoves
from fastevm.core.state.account cimport Account


cdef class Runner(BlockBuilder):
    cdef PrecompileMoves moves
    cdef Deadline deadline    # the machine's cancel flag points to its request

    cdef Account* account(self, bytes address) except NULL
    cdef object outcome(self, const TxResult* result)
