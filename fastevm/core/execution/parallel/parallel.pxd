# Which blocks run on several threads, and the memory for it, kept between blocks.
from fastevm.core.execution.parallel.optimistic cimport RunAhead
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.records cimport World


cdef class ParallelRun:
    """Threads' worlds and machines, taken for one block at a time."""
    cdef RunAhead* c


# Whether it pays to run these transactions ahead of their turn: a mere transfer costs less alone.
cdef bint pays(
    const Schedule* schedule, const World* w, const Tx** transactions, size_t count
) noexcept nogil
# Worlds and machines for so many threads; `give_back` them after the block, with the number of
# transactions that were committed.
cdef ParallelRun take(int threads)
cdef int give_back(ParallelRun run, size_t committed) except -1
