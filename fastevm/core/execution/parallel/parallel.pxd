# When optimistic execution pays, and its threads' memory, which is kept between blocks.
from fastevm.core.execution.parallel.optimistic cimport OptimisticExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.records cimport World


cdef class ParallelRun:
    """The worlds and machines of the threads; one block uses them at a time."""
    cdef OptimisticExecutor* c


# Whether optimistic execution of these transactions is faster than sequential execution. It is not
# if nearly all are simple transfers.
cdef bint pays(
    const Schedule* schedule, const World* w, const Tx** transactions, size_t count
) noexcept nogil
# Worlds and machines for so many threads. Call `give_back` after the block, with the number of
# committed transactions.
cdef ParallelRun take(int threads)
cdef int give_back(ParallelRun run, size_t committed) except -1
