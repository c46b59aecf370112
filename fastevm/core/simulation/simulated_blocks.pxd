# Simulated chains as values of the library.
from fastevm.core.simulation.executor cimport ChainExecutor


# A SimulatedBlock.
cdef object block_value(ChainExecutor run, size_t at)
# The withdrawals of a block; None before there were any.
cdef object withdrawals_of(ChainExecutor run, size_t at)
