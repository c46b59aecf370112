# Executes transactions sequentially while other threads recover the senders of later transactions.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxResult


# Executes the transactions in order and returns how many ran. Their receipts are not encoded.
# `threads`: how many threads recover senders, including the caller, which recovers all senders if
# no other thread is free. `result` receives the result of the last transaction tried.
cdef size_t run_pipelined(
    BlockExecutor* b, Tx** transactions, size_t count, int threads, TxResult* result
) noexcept nogil
