"""Pipelines sender recovery and sequential execution.

The caller executes the transactions in order while other threads recover the senders of later
transactions. If the sender of the next transaction is not known yet, the caller also recovers.
"""

from libc.stdint cimport int64_t
from libc.string cimport memset

from fastevm.core.execution.block.block_executor cimport executor_transact_from
from fastevm.core.execution.transaction.sender_recovery cimport (
    SENDERS_AT_ONCE, SenderBatch, batch_recover, batch_recover_until, batch_signatures, batch_stop,
)
from fastevm.core.execution.transaction.transaction_result cimport TX_OUT_OF_MEMORY
from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.thread_pool cimport TEAM_LIMIT, team_run


cdef struct Pipeline:
    BlockExecutor* block
    SenderBatch senders
    TxResult* result
    size_t ran


cdef void run_in_order(Pipeline* s) noexcept nogil:
    cdef const Tx** transactions = <const Tx**>s.senders.transactions
    cdef size_t count = <size_t>s.senders.count, index
    cdef Buffer scratch
    memset(&scratch, 0, sizeof(scratch))
    for index in range(count):
        if not batch_recover_until(&s.senders, s.senders.transactions[index], &scratch):
            s.result.error = TX_OUT_OF_MEMORY
            break
        if executor_transact_from(s.block, transactions, index, index + 1, NULL, s.result) == index:
            break
        s.ran = index + 1
    batch_stop(&s.senders)
    buffer_free(&scratch)


cdef void share(void* context, int member) noexcept nogil:
    cdef Pipeline* s = <Pipeline*>context
    if member == 0:
        run_in_order(s)
    else:
        batch_recover(&s.senders)


cdef size_t run_pipelined(
    BlockExecutor* b, Tx** transactions, size_t count, int threads, TxResult* result
) noexcept nogil:
    cdef Pipeline s
    cdef int64_t useful
    memset(&s, 0, sizeof(s))
    memset(result, 0, sizeof(TxResult))
    s.block = b
    s.senders.transactions = transactions
    s.senders.count = <int64_t>count
    s.result = result
    useful = min(<int64_t>threads, batch_signatures(&s.senders) // SENDERS_AT_ONCE)
    useful = min(useful, <int64_t>TEAM_LIMIT)
    if useful < 2 or not team_run(share, &s, <int>useful):
        share(&s, 0)
    return s.ran
