# Decides when optimistic execution is faster, and keeps its memory between blocks.
from fastevm.core.execution.parallel.optimistic cimport OptimisticExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.records cimport World


cdef class ParallelRun:
    """The worlds and machines of the threads. Only one block at a time uses them."""
    cdef OptimisticExecutor* c


# Whether optimistic execution of these transactions should be faster than sequential execution.
# False if nearly all of them are simple transfers.
cdef bint pays(
    const Schedule* schedule, const World* w, const Tx** transactions, size_t count
) noexcept nogil
# Returns worlds and machines for `threads` threads. Call `keep_run` after the block, with the
# number of committed transactions.
cdef ParallelRun take(int threads)
cdef int keep_run(ParallelRun run, size_t committed) except -1
