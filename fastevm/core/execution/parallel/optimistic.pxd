# Block-STM: optimistic execution of a block's transactions on several threads. Each thread takes
# the next transaction and executes it on the newest versions in multi-version memory. Transactions
# are validated and committed in order. A transaction that fails validation, because its reads are
# stale, is re-executed on the committed state.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxResult


cdef enum:
    MOST_THREADS = 16


cdef struct OptimisticExecutor


# Returns NULL if memory is exhausted.
cdef OptimisticExecutor* optimistic_new(int threads) noexcept nogil
cdef void optimistic_free(OptimisticExecutor* r) noexcept nogil
cdef int optimistic_threads(const OptimisticExecutor* r) noexcept nogil
# How many transactions of the last block failed validation and were re-executed.
cdef size_t optimistic_reexecuted(const OptimisticExecutor* r) noexcept nogil
# Executes transactions and appends the records of their receipts, without encodings. Returns how
# many transactions were committed, with the effects of sequential execution; 0 if no thread is
# free. The caller executes the remaining transactions, of which the first may be invalid.
# `result.error` is TX_OUT_OF_MEMORY if the block cannot be continued, else TX_VALID.
cdef size_t optimistic_run(
    OptimisticExecutor* r, BlockExecutor* b, const Tx** transactions, size_t count, TxResult* result
) noexcept nogil
