"""Executes a block by its access list (EIP-7928): no transaction waits for another.

All threads take part in each of these stages:

1. Decode the list.
2. Execute and validate the transactions, and commit the list's last values.
3. Fill in the receipts.
4. Hash the leaves, then the branches of the receipts trie.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.parallel.bal_receipts cimport (
    Outcome,
    bal_receipts_close,
    bal_receipts_fill,
    bal_receipts_free,
    bal_receipts_gather,
    bal_receipts_open,
    bal_receipts_plan,
    bal_receipts_accumulate,
    bal_receipts_record,
)
from fastevm.core.execution.block.packed_receipts cimport PackedReceipts, adopted_receipts
from fastevm.core.execution.block.receipts cimport receipts_borrow
from fastevm.core.execution.transaction.transact cimport transact
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TX_VALID, TxOptions
from fastevm.core.interpreter.machine cimport Machine, machine_free, machine_new
from fastevm.core.primitives.arena cimport Arena, arena_alloc, arena_free, arena_new, arena_reset
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport atomic_observe_int, atomic_publish_int
from fastevm.core.primitives.persistent_map cimport map_release, map_retain
from fastevm.core.primitives.stages cimport Stage, shares_of, stages_run
from fastevm.core.primitives.thread_pool cimport TEAM_LIMIT
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.bal_commit cimport bal_commit
from fastevm.core.state.bal_reader cimport (
    BalView,
    bal_validate,
    bal_reader,
)
from fastevm.core.state.bal_decode cimport (
    BalTotals,
    bal_free,
    bal_open,
    bal_read,
    bal_read_part,
)
from fastevm.core.state.layer cimport Changes, Layer
from fastevm.core.state.account_map cimport ACCOUNT_MAP
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.world cimport (
    LogRecord,
    World,
    world_begin,
    world_follow,
    world_free,
    world_new,
    world_record_accesses,
)
from fastevm.core.trie.ordered cimport (
    ordered_branch_shares,
    ordered_hash_branch_share,
    ordered_hash_leaf_share,
    ordered_leaf_shares,
)


cdef enum:
    ARENA_CHUNK = 256 * 1024
    PARTS_AT_ONCE = 16        # accounts per work item
    MOST_AT_ONCE = 4          # at most this many transactions per work item
    # at least this many work items per thread, if there are many transactions
    ITEMS_OF_EACH = 32


# The first work items of stage RUN. They take longest, so they come first. All further items are
# transactions.
cdef enum:
    COMMIT_ITEM = 0
    PLAN_ITEM = 1
    OTHER_ITEMS = 2


# The stages of a block.
cdef enum:
    READ_LIST = 0
    RUN = 1
    FILL_RECEIPTS = 2
    HASH_LEAVES = 3
    HASH_BRANCHES = 4
    STAGES = 5


cdef struct Runner:
    Machine* machine
    World* world              # the state that the current transaction sees
    Arena* arena              # memory for logs and decoded values, freed when the block ends
    BalTotals sums            # counts of the list items that this thread decoded
    BalTotals validated       # counts of the list items that its executions accessed
    uint64_t gas              # regular gas of its executions
    uint64_t padding[8]       # keeps counters of two threads in different cache lines


cdef struct BalThreads:
    int threads
    Runner runners[TEAM_LIMIT]
    # --- one block ---
    BlockExecutor* block
    Bal* bal
    BalReceipts* receipts
    size_t at_once            # transactions in an item of work
    MapNode* accounts         # accounts before the block; after COMMIT_ITEM, those after it
    ChangeList* changes
    int failed                # atomic: all threads stop
    Stage stages[STAGES]


cdef void threads_free(BalThreads* t) noexcept nogil:
    cdef int i
    if t == NULL:
        return
    for i in range(t.threads):
        machine_free(t.runners[i].machine)
        world_free(t.runners[i].world)
        if t.runners[i].arena != NULL:
            arena_free(t.runners[i].arena)
    PyMem_RawFree(t)


cdef BalThreads* threads_new(int threads) noexcept nogil:
    cdef BalThreads* t = <BalThreads*>PyMem_RawCalloc(1, sizeof(BalThreads))
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


cdef void give_up(BalThreads* t) noexcept nogil:
    atomic_publish_int(&t.failed, True)


# ----------------------------------------------------------------------------------------------
# the list

cdef void read_parts(void* context, int member, int64_t item) noexcept nogil:
    cdef BalThreads* t = <BalThreads*>context
    cdef Runner* runner = &t.runners[member]
    cdef size_t at = <size_t>item * PARTS_AT_ONCE
    cdef size_t end = min(at + PARTS_AT_ONCE, t.bal.account_count)
    while at < end and not atomic_observe_int(&t.failed):
        if not bal_read_part(t.bal, runner.arena, at, &runner.sums):
            give_up(t)
        at += 1


cdef inline void add_up(BalTotals* sums, const BalTotals* more) noexcept nogil:
    sums.items += more.items
    sums.changes += more.changes


cdef void end_of_list(void* context) noexcept nogil:
    """Adds up the threads' counts of list items and validates the system calls at index 0."""
    cdef BalThreads* t = <BalThreads*>context
    cdef int i
    for i in range(t.threads):
        add_up(&t.bal.sums, &t.runners[i].sums)
    if not t.failed:
        t.failed = not bal_validate(t.bal, t.block.world, &t.runners[0].validated)
    if not t.failed:
        t.stages[RUN].count = OTHER_ITEMS + shares_of(t.receipts.count, t.at_once)


# ----------------------------------------------------------------------------------------------
# transactions

cdef bint keep_logs(Runner* runner, Outcome* outcome) noexcept nogil:
    """Copies the logs to the arena, because the world is reused for the next transaction."""
    cdef const World* w = runner.world
    cdef LogRecord* log
    cdef uint8_t* data
    cdef size_t i
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


cdef bint execute(BalThreads* t, Runner* runner, size_t at) noexcept nogil:
    """Executes a transaction on the state that the list gives for its index.

    Returns False if the execution contradicts the list.
    """
    cdef Outcome* outcome = &t.receipts.outcomes[at]
    cdef BalView view
    cdef Reader reader
    cdef TxOptions options
    memset(&view, 0, sizeof(view))
    memset(&reader, 0, sizeof(reader))
    view.bal = t.bal
    view.arena = runner.arena
    view.index = <uint32_t>at + 1
    bal_reader(&view, &reader)
    memset(&options, 0, sizeof(options))
    options.skip_block_gas = True  # `bal_receipts_accumulate` checks it
    world_begin(runner.world, &reader)
    if not world_record_accesses(runner.world):
        return False
    runner.world.accesses.index = view.index
    if TX_VALID != transact(
        runner.machine, t.receipts.transactions[at], &options, 0, &outcome.result
    ):
        return False
    if not bal_validate(t.bal, runner.world, &runner.validated):
        return False
    runner.gas += outcome.result.block_gas
    if runner.gas > t.block.context.gas_limit or not keep_logs(runner, outcome):
        return False
    bal_receipts_record(t.receipts, at, runner.world.log_index)
    return True


cdef void commit(BalThreads* t) noexcept nogil:
    cdef bint failed = False
    t.accounts = bal_commit(t.bal, t.accounts, t.changes, &failed)
    if failed:
        give_up(t)


cdef void run_some(void* context, int member, int64_t item) noexcept nogil:
    cdef BalThreads* t = <BalThreads*>context
    cdef size_t at, end
    if item == COMMIT_ITEM:
        commit(t)
        return
    if item == PLAN_ITEM:
        bal_receipts_plan(t.receipts)
        return
    at = <size_t>(item - OTHER_ITEMS) * t.at_once
    end = min(at + t.at_once, t.receipts.count)
    while at < end and not atomic_observe_int(&t.failed):
        if not execute(t, &t.runners[member], at):
            give_up(t)
        at += 1


cdef void end_of_run(void* context) noexcept nogil:
    cdef BalThreads* t = <BalThreads*>context
    if not t.failed and not bal_receipts_accumulate(t.receipts, t.block):
        t.failed = True
    if not t.failed:
        t.stages[FILL_RECEIPTS].count = t.receipts.share_count


# ----------------------------------------------------------------------------------------------
# receipts

cdef void fill_receipts(void* context, int _member, int64_t item) noexcept nogil:
    cdef BalThreads* t = <BalThreads*>context
    bal_receipts_fill(t.receipts, t.block, item)


cdef void end_of_receipts(void* context) noexcept nogil:
    cdef BalThreads* t = <BalThreads*>context
    if t.failed or t.receipts.failed:
        t.failed = True
        return
    bal_receipts_gather(t.receipts)
    t.stages[HASH_LEAVES].count = ordered_leaf_shares(&t.receipts.trie)
    t.stages[HASH_BRANCHES].count = ordered_branch_shares(&t.receipts.trie)


cdef void hash_leaves(void* context, int _member, int64_t item) noexcept nogil:
    ordered_hash_leaf_share(&(<BalThreads*>context).receipts.trie, item)


cdef void hash_branches(void* context, int _member, int64_t item) noexcept nogil:
    ordered_hash_branch_share(&(<BalThreads*>context).receipts.trie, item)


# ----------------------------------------------------------------------------------------------
# the block

cdef void begin(BalThreads* t, BlockExecutor* b) noexcept nogil:
    cdef Runner* runner
    cdef int i
    for i in range(t.threads):
        runner = &t.runners[i]
        runner.machine.schedule = b.schedule
        runner.machine.block = &b.context
        runner.machine.cancel = b.machine.cancel
        memset(&runner.sums, 0, sizeof(BalTotals))
        memset(&runner.validated, 0, sizeof(BalTotals))
        runner.gas = 0
    t.block = b
    t.failed = False
    t.at_once = t.receipts.count // (<size_t>t.threads * ITEMS_OF_EACH)
    t.at_once = min(max(t.at_once, <size_t>1), <size_t>MOST_AT_ONCE)
    memset(t.stages, 0, sizeof(t.stages))
    t.stages[READ_LIST].item = read_parts
    t.stages[READ_LIST].end = end_of_list
    t.stages[READ_LIST].count = shares_of(t.bal.account_count, PARTS_AT_ONCE)
    t.stages[RUN].item = run_some
    t.stages[RUN].end = end_of_run
    t.stages[FILL_RECEIPTS].item = fill_receipts
    t.stages[FILL_RECEIPTS].end = end_of_receipts
    t.stages[HASH_LEAVES].item = hash_leaves
    t.stages[HASH_BRANCHES].item = hash_branches


cdef bint run_block(BalThreads* t, BlockExecutor* b) noexcept nogil:
    begin(t, b)
    stages_run(t.stages, STAGES, t, t.threads)
    return not t.failed and bal_receipts_close(t.receipts)


cdef bint begin_the_end(BalView* view, BlockExecutor* b) noexcept nogil:
    """Makes the block's world read the state after the last transaction."""
    cdef Reader reader
    memset(&reader, 0, sizeof(reader))
    bal_reader(view, &reader)
    world_begin(b.world, &reader)
    world_follow(b.world, b.schedule)
    return world_record_accesses(b.world)


cdef BalThreads* kept = NULL  # idle threads' memory, kept for the next block
cdef size_t blocks_by_list = 0


def counted() -> int:
    """Returns how many blocks this process has executed by their access lists."""
    return blocks_by_list


cdef class BalExecutor:
    def __dealloc__(self):
        global kept
        bal_free(&self.bal)
        bal_receipts_free(&self.receipts)
        map_release(self.accounts, &ACCOUNT_MAP)
        threads_free(kept)
        kept = self.c

    cdef bint run(
        self, BlockExecutor* b, const Tx** transactions, size_t count, const Address* deposits
    ):
        cdef BalThreads* t = self.c
        cdef bint ok
        cdef int i
        self.changes = Changes.__new__(Changes)
        t.bal = &self.bal
        t.receipts = &self.receipts
        t.changes = self.changes.list
        t.accounts = map_retain(self.layer.accounts)
        with nogil:
            ok = bal_receipts_open(&self.receipts, transactions, count)
            self.receipts.deposit_contract = deposits[0]
            ok = ok and run_block(t, b)
        self.accounts = t.accounts
        if not ok:
            return False
        for i in range(t.threads):
            add_up(&self.validated, &t.runners[i].validated)
        self.end.bal = &self.bal
        self.end.arena = t.runners[0].arena
        self.end.index = <uint32_t>count + 1
        receipts_borrow(&b.receipts, self.receipts.records, count, self.receipts.bloom)
        return begin_the_end(&self.end, b)

    cdef bint is_complete(self, BlockExecutor* b) noexcept:
        global blocks_by_list
        cdef const BalTotals* sums = &self.bal.sums
        if not bal_validate(&self.bal, b.world, &self.validated):
            return False
        if self.validated.items != sums.items or self.validated.changes != sums.changes:
            return False
        blocks_by_list += 1
        return True

    cdef Layer layer_after(self):
        cdef MapNode* accounts = self.accounts
        self.accounts = NULL
        return self.layer.followed_by(accounts, self.changes)

    cdef PackedReceipts packed(self, object blob_gas_price):
        cdef PackedReceipts packed = adopted_receipts(
            self.receipts.records, self.receipts.count, self.receipts.logs, blob_gas_price
        )
        self.receipts.records = NULL
        return packed


cdef BalExecutor take_bal_executor(Layer layer, bytes access_list, int threads):
    global kept
    cdef BalExecutor run = BalExecutor.__new__(BalExecutor)
    cdef int i
    if kept != NULL and kept.threads == threads:
        run.c = kept
        kept = NULL
    else:
        run.c = threads_new(threads)
        if run.c == NULL:
            raise MemoryError
    for i in range(run.c.threads):
        arena_reset(run.c.runners[i].arena)
    run.layer = layer
    if bal_open(
        &run.bal, run.c.runners[0].arena,
        <const uint8_t*>PyBytes_AS_STRING(access_list), PyBytes_GET_SIZE(access_list),
    ):
        layer.attach(&run.bal.below)
        return run
    return None


def listed_items(bytes access_list not None) -> int | None:
    """Returns the number of addresses and slots in an RLP access list, or None if it is invalid."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(access_list)
    cdef size_t size = PyBytes_GET_SIZE(access_list)
    cdef Arena* arena = arena_new(ARENA_CHUNK)
    cdef Bal bal
    cdef bint ok
    memset(&bal, 0, sizeof(bal))
    if arena == NULL:
        raise MemoryError
    with nogil:
        ok = bal_read(&bal, arena, data, size)
    items = bal.sums.items if ok else None
    bal_free(&bal)
    arena_free(arena)
    return items
