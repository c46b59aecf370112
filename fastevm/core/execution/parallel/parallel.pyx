"""Decides when optimistic execution (Block-STM) is worthwhile, and keeps its memory between blocks.
"""

from fastevm.core.execution.parallel.optimistic cimport (
    optimistic_free,
    optimistic_new,
    optimistic_reexecuted,
    optimistic_threads,
)


cdef enum:
    KEPT_RUNS = 1                 # idle ParallelRun objects kept for the next block
    PARALLEL_TRANSACTIONS = 8     # a block with fewer transactions runs sequentially
    CALL_SHARE = 20               # so does a block with less than one call in 20 transactions


cdef bint pays(
    const Schedule* schedule, const World* w, const Tx** transactions, size_t count
) noexcept nogil:
    cdef size_t i, calls = 0
    for i in range(count):
        calls += transactions[i].size != 0
    return (
        count >= PARALLEL_TRANSACTIONS and calls * CALL_SHARE >= count and w.accesses == NULL
        and not schedule.has_deposits and not schedule.has_fee_vaults
        and not schedule.has_da_footprint and not schedule.counts_gas_before_refunds
    )


cdef list kept = []


cdef class ParallelRun:
    def __dealloc__(self):
        optimistic_free(self.c)


cdef size_t committed_ahead = 0
cdef size_t repeated = 0


def counts() -> dict[str, int]:
    """Returns how many transactions optimistic execution committed and how many it re-executed."""
    return {"ran": committed_ahead, "repeated": repeated}


cdef ParallelRun take(int threads):
    cdef ParallelRun run
    while kept:
        run = kept.pop()
        if optimistic_threads(run.c) == threads:
            return run
    run = ParallelRun.__new__(ParallelRun)
    run.c = optimistic_new(threads)
    if run.c == NULL:
        raise MemoryError
    return run


cdef int keep_run(ParallelRun run, size_t committed) except -1:
    global committed_ahead, repeated
    committed_ahead += committed
    repeated += optimistic_reexecuted(run.c)
    if len(kept) < KEPT_RUNS:
        kept.append(run)
    return 0
