# The transactions of a block one after the other, while other threads recover their senders.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxResult


# Run all transactions; the number that ran, each as if all senders had been known. Their receipts
# are not encoded. `threads`: how many recover senders, the caller included; where none of them is
# free the caller recovers them alone. `result`: of the last one that was tried.
cdef size_t run_beside(
    BlockExecutor* b, Tx** transactions, size_t count, int threads, TxResult* result
) noexcept nogil
