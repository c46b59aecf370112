# The transactions of a block on several threads: each takes the next one and runs it ahead of those
# before it; whoever finds the first one done commits it, or runs it again on what is then final.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxResult


cdef enum:
    MOST_THREADS = 16


cdef struct RunAhead


# NULL: out of memory.
cdef RunAhead* run_ahead_new(int threads) noexcept nogil
cdef void run_ahead_free(RunAhead* r) noexcept nogil
cdef int run_ahead_threads(const RunAhead* r) noexcept nogil
# How many transactions of the last block ran again when their turn came.
cdef size_t run_ahead_repeated(const RunAhead* r) noexcept nogil
# Run transactions of a block and append the records of their receipts, without encodings; the
# number that ran, with just the effects that they have one after the other. The caller runs the
# others, of which the first may be one that is not valid. 0 too where no thread is free.
# `result.error`: TX_OUT_OF_MEMORY if the block cannot be continued, else TX_VALID.
cdef size_t run_ahead(
    RunAhead* r, BlockExecutor* b, const Tx** transactions, size_t count, TxResult* result
) noexcept nogil
