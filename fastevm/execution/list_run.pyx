"""Blocks by their access lists: every transaction on the state that the list gives it."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.execution.block_executor cimport BlockExecutor, block_has_room, executor_record
from fastevm.execution.receipts cimport ReceiptRecord, receipts_add
from fastevm.execution.transact cimport transact
from fastevm.execution.transaction_data cimport Tx
from fastevm.execution.transaction_result cimport TX_VALID, TxOptions, TxResult
from fastevm.execution.transaction_state_gas cimport check_room
from fastevm.interpreter.machine cimport Machine, machine_free, machine_new
from fastevm.primitives.arena cimport Arena, arena_alloc, arena_free, arena_new, arena_reset
from fastevm.primitives.intrinsics cimport (
    atomic_increment,
    atomic_observe_int,
    atomic_publish_int,
)
from fastevm.primitives.team cimport TEAM_LIMIT, team_run
from fastevm.state.claimed_state cimport (
    ClaimedView,
    Claims,
    claims_apply,
    claims_close,
    claims_complete,
    claims_confirm,
    claims_free,
    claims_open,
    claims_read,
    claims_read_part,
    claims_reader,
)
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport (
    LogRecord,
    World,
    world_begin,
    world_copy_logs,
    world_free,
    world_new,
    world_record_accesses,
)


cdef enum:
    ARENA_CHUNK = 256 * 1024
    PARTS_AT_ONCE = 16        # accounts of a list that a thread reads
    KEPT_THREADS = 1          # idle sets of them, for the next block


cdef struct Runner:
    Machine* machine
    World* world              # of one transaction at a time
    Arena* arena              # logs and values of before, until the block ends
    int64_t confirmed         # changes of the list
    uint64_t gas              # regular gas so far


# What a transaction left, until its turn comes.
cdef struct Outcome:
    TxResult result
    LogRecord* logs
    uint64_t log_indices


cdef struct ListThreads:
    int threads
    Runner runners[TEAM_LIMIT]
    # --- one block ---
    BlockExecutor* block
    Claims* claims
    const Tx** transactions
    int64_t count
    Outcome* outcomes
    int64_t taken             # atomic
    int failed                # atomic: nobody goes on


cdef void threads_free(ListThreads* t) noexcept nogil:
    cdef int i
    if t == NULL:
        return
    for i in range(t.threads):
        machine_free(t.runners[i].machine)
        world_free(t.runners[i].world)
        if t.runners[i].arena != NULL:
            arena_free(t.runners[i].arena)
    PyMem_RawFree(t)


cdef ListThreads* threads_new(int threads) noexcept nogil:
    cdef ListThreads* t = <ListThreads*>PyMem_RawCalloc(1, sizeof(ListThreads))
    cdef Runner* runner
    cdef int i
    if t == NULL:
        return NULL
    t.threads = threads if threads < TEAM_LIMIT else TEAM_LIMIT
    for i in range(t.threads):
        runner = &t.runners[i]
        runner.machine = machine_new()
        runner.world = world_new()
        runner.arena = arena_new(ARENA_CHUNK)
        if runner.machine == NULL or runner.world == NULL or runner.arena == NULL:
            threads_free(t)
            return NULL
        runner.machine.world = runner.world
    return t


# ----------------------------------------------------------------------------------------------
# the list

cdef void read_parts(void* context, int member) noexcept nogil:
    cdef ListThreads* t = <ListThreads*>context
    cdef size_t at, end
    while not atomic_observe_int(&t.failed):
        at = <size_t>(atomic_increment(&t.taken) - 1) * PARTS_AT_ONCE
        if at >= t.claims.account_count:
            break
        end = min(at + PARTS_AT_ONCE, t.claims.account_count)
        while at < end:
            if not claims_read_part(t.claims, t.runners[member].arena, at):
                atomic_publish_int(&t.failed, True)
                return
            at += 1


cdef bint read_list(ListThreads* t) noexcept nogil:
    """Read the list that is open."""
    t.taken = 0
    t.failed = False
    if not team_run(read_parts, t, t.threads):
        read_parts(t, 0)
    return not t.failed and claims_close(t.claims)


# ----------------------------------------------------------------------------------------------
# one transaction

cdef bint keep_logs(Runner* runner, Outcome* outcome) noexcept nogil:
    """Copy the logs, whose world goes on to the next transaction."""
    cdef const World* w = runner.world
    cdef LogRecord* log
    cdef uint8_t* data
    cdef size_t i
    outcome.log_indices = w.log_index
    outcome.logs = NULL
    if w.log_count == 0:
        return True
    outcome.logs = <LogRecord*>arena_alloc(runner.arena, w.log_count * sizeof(LogRecord))
    if outcome.logs == NULL:
        return False
    memcpy(outcome.logs, w.logs, w.log_count * sizeof(LogRecord))
    for i in range(w.log_count):
        log = &outcome.logs[i]
        data = <uint8_t*>arena_alloc(runner.arena, log.size + 1)
        if data == NULL:
            return False
        memcpy(data, log.data, log.size)
        log.data = data
    return True


cdef bint execute(ListThreads* t, Runner* runner, size_t at) noexcept nogil:
    """Run a transaction on what the list says of those before it. False: it did otherwise."""
    cdef Outcome* outcome = &t.outcomes[at]
    cdef ClaimedView view
    cdef Reader reader
    cdef TxOptions options
    cdef int64_t confirmed
    view.claims = t.claims
    view.arena = runner.arena
    view.index = <uint32_t>at + 1
    claims_reader(&view, &reader)
    memset(&options, 0, sizeof(options))
    options.skip_block_gas = True  # looked at when its turn comes
    world_begin(runner.world, &reader)
    if not world_record_accesses(runner.world):
        return False
    runner.world.accesses.index = view.index
    if transact(runner.machine, t.transactions[at], &options, 0, &outcome.result) != TX_VALID:
        return False
    confirmed = claims_confirm(t.claims, runner.world)
    if confirmed < 0:
        return False
    runner.confirmed += confirmed
    runner.gas += outcome.result.block_gas
    return runner.gas <= t.block.context.gas_limit and keep_logs(runner, outcome)


cdef void work(void* context, int member) noexcept nogil:
    cdef ListThreads* t = <ListThreads*>context
    cdef int64_t at
    while not atomic_observe_int(&t.failed):
        at = atomic_increment(&t.taken) - 1
        if at >= t.count:
            break
        if not execute(t, &t.runners[member], <size_t>at):
            atomic_publish_int(&t.failed, True)


# ----------------------------------------------------------------------------------------------
# the block

cdef void begin(ListThreads* t, BlockExecutor* b) noexcept nogil:
    cdef int i
    for i in range(t.threads):
        arena_reset(t.runners[i].arena)
        t.runners[i].machine.schedule = b.schedule
        t.runners[i].machine.block = &b.context
        t.runners[i].machine.cancel = b.machine.cancel
        t.runners[i].confirmed = 0
        t.runners[i].gas = 0
    t.block = b


cdef bint record(BlockExecutor* b, const Tx* tx, Outcome* outcome) noexcept nogil:
    """The receipt of a transaction in its turn. False: the block has no room for it."""
    cdef TxResult* result = &outcome.result
    cdef ReceiptRecord* receipt
    cdef TxOptions options
    cdef TxResult room
    cdef uint64_t footprint = 0, limit = b.context.gas_limit
    memset(&options, 0, sizeof(options))
    if block_has_room(b, tx, &options, &footprint, &room) != TX_VALID:
        return False
    if b.regular_gas_used > limit or TX_VALID != check_room(
        limit, limit - b.regular_gas_used, b.state_gas_used, result
    ):
        return False
    receipt = receipts_add(&b.receipts)
    result.first_log = b.world.log_count
    if receipt == NULL or not world_copy_logs(
        b.world, outcome.logs, result.log_count, outcome.log_indices
    ):
        return False
    executor_record(b, receipt, tx, footprint, result)
    return True


cdef bint run_block(
    ListThreads* t, Claims* claims, BlockExecutor* b, int64_t* confirmed
) noexcept nogil:
    cdef int64_t i
    cdef int j
    begin(t, b)
    if not read_list(t):
        return False
    t.taken = 0
    if t.count == 1 or not team_run(work, t, t.threads):
        work(t, 0)
    if t.failed:
        return False
    for j in range(t.threads):
        confirmed[0] += t.runners[j].confirmed
    for i in range(t.count):
        if not record(b, t.transactions[i], &t.outcomes[i]):
            return False
    return claims_apply(claims, <uint32_t>t.count)


cdef list kept = []
cdef size_t blocks_by_list = 0


def counted() -> int:
    """Blocks that ran by their lists in this process."""
    return blocks_by_list


cdef class ListRun:
    def __dealloc__(self):
        claims_free(&self.claims)
        threads_free(self.c)

    cdef bint run(self, BlockExecutor* b, const Tx** transactions, size_t count) noexcept:
        cdef ListThreads* t = self.c
        cdef bint ok = False
        self.claims.below = b.world
        t.claims = &self.claims
        t.transactions = transactions
        t.count = <int64_t>count
        t.outcomes = <Outcome*>PyMem_RawCalloc(count, sizeof(Outcome))
        if t.outcomes != NULL:
            with nogil:
                ok = run_block(t, &self.claims, b, &self.confirmed)
            PyMem_RawFree(t.outcomes)
        return ok

    cdef bint is_complete(self, BlockExecutor* b) noexcept:
        global blocks_by_list
        cdef int64_t confirmed = claims_confirm(&self.claims, b.world)
        if confirmed < 0 or not claims_complete(&self.claims, self.confirmed + confirmed):
            return False
        blocks_by_list += 1
        return True


cdef ListRun take_list_run(bytes access_list, int threads):
    cdef ListRun run
    while kept:
        run = kept.pop()
        if run.c.threads == threads:
            break
    else:
        run = ListRun.__new__(ListRun)
        run.c = threads_new(threads)
        if run.c == NULL:
            raise MemoryError
    run.confirmed = 0
    if claims_open(
        &run.claims, <const uint8_t*>PyBytes_AS_STRING(access_list), PyBytes_GET_SIZE(access_list)
    ):
        return run
    give_back_list_run(run)
    return None


cdef int give_back_list_run(ListRun run) except -1:
    claims_free(&run.claims)
    if len(kept) < KEPT_THREADS:
        kept.append(run)
    return 0


def listed_items(bytes access_list not None) -> int | None:
    """Addresses and slots of each in the RLP of a list; None: its form is wrong."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(access_list)
    cdef size_t size = PyBytes_GET_SIZE(access_list)
    cdef Claims claims
    cdef bint ok
    with nogil:
        ok = claims_read(&claims, data, size)
    items = claims.items if ok else None
    claims_free(&claims)
    return items
