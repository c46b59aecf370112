# The blocks of simulated chains as Python values.
from fastevm.core.simulation.executor cimport ChainExecutor


# Returns a SimulatedBlock.
cdef object block_value(ChainExecutor run, size_t at)
# Returns the withdrawals of a block; None if its fork has no withdrawals.
cdef object withdrawals_of(ChainExecutor run, size_t at)
