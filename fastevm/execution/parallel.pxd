# Which blocks run on several threads, and the memory for it, kept between blocks.
from fastevm.execution.run_ahead cimport RunAhead


cdef class ParallelRun:
    """Threads' worlds and machines, taken for one block at a time."""
    cdef RunAhead* c


# Worlds and machines for so many threads; `give_back` them after the block, with the number of
# transactions that were committed.
cdef ParallelRun take(int threads)
cdef int give_back(ParallelRun run, size_t committed) except -1
