# Sequential execution, while other threads recover the senders of the transactions to come.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxResult


# Executes the transactions in order and returns how many ran. Their receipts are not encoded.
# `threads`: how many recover senders, the caller included; if none of the others is free, the
# caller recovers all. `result`: of the last transaction that was tried.
cdef size_t run_pipelined(
    BlockExecutor* b, Tx** transactions, size_t count, int threads, TxResult* result
) noexcept nogil
