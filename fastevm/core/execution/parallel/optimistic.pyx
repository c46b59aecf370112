"""Block-STM: executes transactions optimistically, then validates and commits them in order."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.execution.block.block_executor cimport block_has_room, executor_record
from fastevm.core.execution.block.receipts cimport ReceiptRecord, receipts_add
from fastevm.core.execution.transaction.transact cimport transact
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_OUT_OF_MEMORY,
    TX_VALID,
    TxOptions,
)
from fastevm.core.interpreter.machine cimport Machine, machine_free, machine_new
from fastevm.core.primitives.arena cimport Arena, arena_free, arena_new, arena_reset
from fastevm.core.primitives.event_count cimport (
    SPINS,
    EventCount,
    event_count_close,
    event_count_open,
    events_advance,
    events_await,
    events_seen,
)
from fastevm.core.primitives.pthread cimport (
    pthread_mutex_destroy,
    pthread_mutex_init,
    pthread_mutex_lock,
    pthread_mutex_t,
    pthread_mutex_unlock,
)
from fastevm.core.primitives.thread_pool cimport team_run
from fastevm.core.state.speculation cimport (
    Speculation,
    speculation_begin,
    speculation_free,
    speculation_holds,
    speculation_new,
    speculation_publish,
)
from fastevm.core.state.multi_version cimport (
    MultiVersionMemory,
    mv_apply,
    mv_begin,
    mv_end,
    mv_free,
)
from fastevm.core.state.world cimport world_adopt_logs


cdef enum:
    AHEAD_OF_EACH = 8         # executed transactions per thread that may wait for their commit
    ARENA_CHUNK = 256 * 1024


cdef struct Execution:
    Speculation speculation
    TxResult result
    bint done


cdef struct Runner:
    Machine* machine
    Arena* arena              # entries and versions of the multi-version memory


cdef struct OptimisticExecutor:
    int threads
    Runner runners[MOST_THREADS]
    size_t window
    Execution* executions     # ring buffer: execution of transaction n is at n % window
    MultiVersionMemory versions
    # --- one block ---
    BlockExecutor* block
    const Tx** transactions
    size_t count
    EventCount moved          # signalled after every commit, and at the end
    # --- below: under the guard ---
    pthread_mutex_t guard
    size_t taken
    size_t committed
    bint is_committing
    bint stopped              # the threads stop, and the caller runs the next transaction
    bint no_memory
    size_t reexecuted


cdef OptimisticExecutor* optimistic_new(int threads) noexcept nogil:
    cdef OptimisticExecutor* r = <OptimisticExecutor*>PyMem_RawCalloc(1, sizeof(OptimisticExecutor))
    cdef int i
    cdef size_t j
    cdef bint ok
    if r == NULL:
        return NULL
    pthread_mutex_init(&r.guard, NULL)
    event_count_open(&r.moved)
    r.threads = threads if threads < MOST_THREADS else MOST_THREADS
    r.window = <size_t>r.threads * AHEAD_OF_EACH
    r.executions = <Execution*>PyMem_RawCalloc(r.window, sizeof(Execution))
    ok = r.executions != NULL
    for i in range(r.threads):
        r.runners[i].machine = machine_new() if ok else NULL
        r.runners[i].arena = arena_new(ARENA_CHUNK) if ok else NULL
        ok = ok and r.runners[i].machine != NULL and r.runners[i].arena != NULL
    for j in range(r.window):
        ok = ok and speculation_new(&r.executions[j].speculation)
    if not ok:
        optimistic_free(r)
        return NULL
    return r


cdef void optimistic_free(OptimisticExecutor* r) noexcept nogil:
    cdef int i
    cdef size_t j
    if r == NULL:
        return
    for i in range(r.threads):
        machine_free(r.runners[i].machine)
        if r.runners[i].arena != NULL:
            arena_free(r.runners[i].arena)
    if r.executions != NULL:
        for j in range(r.window):
            speculation_free(&r.executions[j].speculation)
    mv_free(&r.versions)
    pthread_mutex_destroy(&r.guard)
    event_count_close(&r.moved)
    PyMem_RawFree(r.executions)
    PyMem_RawFree(r)


cdef int optimistic_threads(const OptimisticExecutor* r) noexcept nogil:
    return r.threads


cdef size_t optimistic_reexecuted(const OptimisticExecutor* r) noexcept nogil:
    return r.reexecuted


# ----------------------------------------------------------------------------------------------
# one transaction

cdef void execute(
    OptimisticExecutor* r, Runner* runner, size_t index, bint is_ahead
) noexcept nogil:
    """Executes a transaction in its own world, above the multi-version memory."""
    cdef Execution* run = &r.executions[index % r.window]
    cdef const Tx* tx = r.transactions[index]
    cdef TxOptions options
    memset(&options, 0, sizeof(options))
    options.skip_block_gas = True  # `commit` checks it
    speculation_begin(
        &run.speculation, &r.versions, runner.arena, &tx.sender, tx.nonce, is_ahead
    )
    runner.machine.world = run.speculation.world
    transact(runner.machine, tx, &options, 0, &run.result)


cdef bint commit(OptimisticExecutor* r, Runner* runner, size_t index) noexcept nogil:
    """Validates and commits the first transaction that is not committed.

    Re-executes the transaction if validation fails. Returns False if the caller has to run it.
    """
    cdef BlockExecutor* b = r.block
    cdef Execution* run = &r.executions[index % r.window]
    cdef const Tx* tx = r.transactions[index]
    cdef ReceiptRecord* record
    cdef TxOptions options
    cdef TxResult room
    cdef uint64_t footprint = 0
    memset(&room, 0, sizeof(room))
    memset(&options, 0, sizeof(options))
    if block_has_room(b, tx, &options, &footprint, &room) != TX_VALID:
        return False
    if b.gas_used > b.context.gas_limit or tx.gas_limit > b.context.gas_limit - b.gas_used:
        return False
    # If all earlier transactions were committed when the execution started, its reads are final.
    if run.result.error != TX_VALID or (
        run.speculation.is_ahead and not speculation_holds(&run.speculation)
    ):
        r.reexecuted += 1
        execute(r, runner, index, False)
        if run.result.error != TX_VALID:
            return False
    record = receipts_add(&b.receipts)
    run.result.first_log = b.world.log_count
    if (
        record == NULL or not world_adopt_logs(b.world, run.speculation.world)
        or not speculation_publish(&run.speculation, runner.arena)
    ):
        r.no_memory = True
        return False
    executor_record(b, record, tx, footprint, &run.result)
    return True


# ----------------------------------------------------------------------------------------------
# the threads

cdef inline bint is_over(const OptimisticExecutor* r) noexcept nogil:
    return r.stopped or r.committed == r.count


cdef void commit_done(OptimisticExecutor* r, Runner* runner) noexcept nogil:
    """Commits executed transactions in order. Called with the guard held."""
    cdef size_t index = r.committed
    cdef bint ok
    r.is_committing = True
    while not is_over(r) and r.executions[index % r.window].done:
        pthread_mutex_unlock(&r.guard)
        ok = commit(r, runner, index)
        pthread_mutex_lock(&r.guard)
        if ok:
            r.executions[index % r.window].done = False
            index += 1
            r.committed = index
        else:
            r.stopped = True
        events_advance(&r.moved)
    r.is_committing = False


cdef void run_next(OptimisticExecutor* r, Runner* runner) noexcept nogil:
    """Executes the next transaction that no thread has claimed. Called with the guard held."""
    cdef size_t index = r.taken
    cdef bint is_ahead = index != r.committed
    r.taken += 1
    pthread_mutex_unlock(&r.guard)
    execute(r, runner, index, is_ahead)
    pthread_mutex_lock(&r.guard)
    r.executions[index % r.window].done = True


cdef void wait_for_a_commit(OptimisticExecutor* r) noexcept nogil:
    """Releases the guard, which the caller holds, until the next commit, then takes it again."""
    cdef int seen = events_seen(&r.moved)
    pthread_mutex_unlock(&r.guard)
    events_await(&r.moved, seen, SPINS)
    pthread_mutex_lock(&r.guard)


cdef void work(void* context, int member) noexcept nogil:
    cdef OptimisticExecutor* r = <OptimisticExecutor*>context
    cdef Runner* runner = &r.runners[member]
    cdef size_t first
    pthread_mutex_lock(&r.guard)
    while not is_over(r):
        first = r.committed
        if not r.is_committing and r.executions[first % r.window].done:
            commit_done(r, runner)
        elif r.taken < r.count and r.taken < first + r.window:
            run_next(r, runner)
        else:
            wait_for_a_commit(r)
    pthread_mutex_unlock(&r.guard)


cdef bint begin(OptimisticExecutor* r, BlockExecutor* b) noexcept nogil:
    cdef int i
    cdef size_t j
    for i in range(r.threads):
        arena_reset(r.runners[i].arena)
        r.runners[i].machine.schedule = b.schedule
        r.runners[i].machine.block = &b.context
        r.runners[i].machine.cancel = b.machine.cancel
    for j in range(r.window):
        r.executions[j].done = False
    r.block = b
    r.taken = 0
    r.committed = 0
    r.reexecuted = 0
    r.is_committing = r.stopped = r.no_memory = False
    return mv_begin(&r.versions, b.world, b.context.gas_limit)


cdef size_t optimistic_run(
    OptimisticExecutor* r, BlockExecutor* b, const Tx** transactions, size_t count, TxResult* result
) noexcept nogil:
    memset(result, 0, sizeof(TxResult))
    if not begin(r, b):
        return 0
    r.transactions = transactions
    r.count = count
    if team_run(work, r, r.threads) and (r.no_memory or not mv_apply(&r.versions)):
        result.error = TX_OUT_OF_MEMORY
    mv_end(&r.versions)
    return r.committed
