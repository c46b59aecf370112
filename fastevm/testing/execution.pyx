"""``TransactionRunner``: runs transactions on a layer, in one call or in steps, with all options.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.transaction.senders import recover_senders

from fastevm.core.execution.transaction.refusals cimport refusal
from fastevm.core.execution.transaction.transact cimport (
    TxRun, transact, transact_abandon, transact_begin, transact_run,
)
from fastevm.core.execution.transaction.transaction cimport Transaction
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_NEEDS_STATE, TX_PAUSED, TX_VALID, TxError, TxOptions, TxResult,
)
from fastevm.core.execution.block.block_context cimport context_put
from fastevm.core.interpreter.machine cimport BlockContext, Machine, machine_free, machine_new
from fastevm.core.interpreter.status cimport NEEDS_STATE, TRACE_FULL
from fastevm.core.interpreter.tracer cimport StepTrace
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word, word_from_int, word_to_int
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.code cimport Code, code_new
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport READ_ABSENT, READ_MISSING, AccountData, Reader, ReadStatus
from fastevm.core.state.world cimport (
    WORLD_NEEDS_ACCOUNT, WORLD_NEEDS_SLOT, LogRecord, World, world_begin, world_free, world_new,
    world_provide_account, world_provide_slot,
)


cdef ReadStatus forgets_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    return READ_MISSING


cdef ReadStatus forgets_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    return READ_MISSING


cdef ReadStatus has_no_block_hash(const void* base, uint64_t number, Hash* out) noexcept nogil:
    return READ_ABSENT


cdef class TransactionRunner:
    """A machine on a layer. ``run`` executes a transaction and keeps its changes.

    - ``block``: coinbase (20 bytes) and the numbers of the block context
    - ``remote``: whether to fetch the state value by value when execution reads it
    - ``stepped``: whether to use transact_begin and transact_run
    - ``suspend``: whether to pause before every hosted op
    - ``trace``: records the execution; ``records`` has the batches that were read when the buffer
      was full
    """
    cdef World* world
    cdef Machine* machine
    cdef BlockContext block
    cdef ForkSchedule schedule
    cdef readonly Layer layer
    cdef bint remote
    cdef bint stepped
    cdef readonly int fetched
    cdef readonly list records
    cdef StepTrace trace
    cdef Hash ancestors[256]

    def __cinit__(
        self, layer, schedule, *, block=None, remote=False, stepped=False, suspend=False,
        StepTrace trace=None,
    ):
        self.world = world_new()
        self.machine = machine_new()
        if self.world == NULL or self.machine == NULL:
            raise MemoryError
        self.layer = layer
        self.schedule = schedule
        self.remote = remote
        self.stepped = stepped
        self.machine.suspend_always = suspend
        self.records = []
        self.trace = trace
        self.machine.tracer = trace.c if trace is not None else NULL
        self.set_block(dict(block or {}))

    def __dealloc__(self):
        machine_free(self.machine)
        world_free(self.world)

    cdef int set_block(self, dict fields) except -1:
        memset(&self.block, 0, sizeof(self.block))
        hashes = fields.pop("block_hashes", ())
        own = {
            "number": 1, "timestamp": 1, "gas_limit": 30_000_000, "chain_id": 1,
            "blob_base_fee": 1,
        }
        for name, value in (own | fields).items():
            assert context_put(&self.block, name, value), name
        for i, value in enumerate(hashes):
            memcpy(self.ancestors[<size_t>i].b, PyBytes_AS_STRING(value), 32)
            self.block.ancestor_count = i + 1
        self.block.ancestors = self.ancestors
        return 0

    def run(self, transaction, *, block_gas_left=None, **options):
        """Executes a transaction; returns the outcome as a dict. Raises InvalidTransaction."""
        cdef Transaction t = transaction
        cdef TxOptions chosen
        cdef TxResult result
        cdef TxError error
        cdef Reader reader
        cdef uint64_t gas_left = (
            self.block.gas_limit if block_gas_left is None else block_gas_left
        )
        memset(&result, 0, sizeof(result))
        memset(&reader, 0, sizeof(reader))
        recover_senders([transaction], threads=1)
        memset(&chosen, 0, sizeof(chosen))
        for name, value in options.items():
            set_option(&chosen, name, value)
        self.open_world(&reader)
        if self.stepped:
            error = self.run_in_steps(&t.c, &chosen, gas_left, &result)
        else:
            error = self.run_at_once(&t.c, &chosen, gas_left, &result)
        if error != TX_VALID:
            before = self.layer.state_root()
            after = self.layer.commit(self.world).state_root()
            assert after == before, "a refused transaction changed the state"
            assert self.world.log_count == 0
            raise refusal(error, &t.c, &result)
        self.layer = self.layer.commit(self.world)
        return self.described(&result)

    cdef int open_world(self, Reader* reader) except -1:
        memset(reader, 0, sizeof(Reader))
        if self.remote:
            reader.code = NULL
            reader.account = forgets_account
            reader.slot = forgets_slot
            reader.block_hash = has_no_block_hash
        else:
            self.layer.attach(reader)
        world_begin(self.world, reader)
        self.machine.world = self.world
        self.machine.schedule = &self.schedule.c
        self.machine.block = &self.block
        return 0

    cdef TxError run_at_once(
        self, const Tx* tx, const TxOptions* options, uint64_t gas_left, TxResult* result
    ) except *:
        cdef TxError error = TX_NEEDS_STATE
        while error == TX_NEEDS_STATE:
            if self.world.need != 0:
                self.fetch()
            with nogil:
                error = transact(self.machine, tx, options, gas_left, result)
        return error

    cdef TxError run_in_steps(
        self, const Tx* tx, const TxOptions* options, uint64_t gas_left, TxResult* result
    ) except *:
        cdef TxRun run
        memset(&run, 0, sizeof(run))
        cdef TxError error = transact_begin(self.machine, tx, options, gas_left, &run, result)
        while error == TX_NEEDS_STATE:
            self.fetch()
            error = transact_begin(self.machine, tx, options, gas_left, &run, result)
        if error != TX_VALID:
            return error
        error = transact_run(self.machine, &run, result)
        while error == TX_PAUSED:
            if run.pause == NEEDS_STATE:
                self.fetch()
            elif run.pause == TRACE_FULL:
                self.records += self.trace.drain()
            error = transact_run(self.machine, &run, result)
        return error

    def begin_and_abandon(self, transaction):
        """Starts a transaction and abandons it; returns the resulting layer."""
        cdef Transaction t = transaction
        cdef TxRun run
        cdef TxResult result
        cdef Reader reader
        memset(&run, 0, sizeof(run))
        memset(&result, 0, sizeof(result))
        memset(&reader, 0, sizeof(reader))
        recover_senders([transaction], threads=1)
        self.open_world(&reader)
        transact_begin(self.machine, &t.c, NULL, self.block.gas_limit, &run, &result)
        transact_abandon(self.machine, &run)
        return self.layer.commit(self.world)

    cdef int fetch(self) except -1:
        """Provides the value that the world's last read missed."""
        cdef bytes address = self.world.need_address.b[:20]
        cdef Word number
        cdef Code* code = NULL
        cdef bytes data
        self.fetched += 1
        if self.world.need == WORLD_NEEDS_SLOT:
            slot = word_to_int(&self.world.need_key)
            word_from_int(&number, self.layer.storage(address, slot))
            world_provide_slot(
                self.world, &self.world.need_address, &self.world.need_key, &number
            )
            return 0
        assert self.world.need == WORLD_NEEDS_ACCOUNT
        account = self.layer.account(address)
        word_from_int(&number, account.balance if account else 0)
        data = self.layer.code(address)
        if data:
            code = code_new(<const uint8_t*><const char*>data, PyBytes_GET_SIZE(data), NULL, False)
        world_provide_account(
            self.world, &self.world.need_address, &number, account.nonce if account else 0, code,
            account is not None, bool(self.layer.storage_items(address)),
        )
        return 0

    cdef dict described(self, const TxResult* result):
        cdef size_t i
        cdef const LogRecord* log
        logs = []
        topics = []
        for i in range(result.log_count):
            log = &self.world.logs[result.first_log + i]
            logs.append((log.address.b[:20], log.data[:log.size], log.index))
            topics.append([word_to_int(&log.topics[<size_t>j]) for j in range(log.topic_count)])
        return {
            "status": <int>result.status,
            "gas_used": result.gas_used,
            "gas_before_refund": result.gas_before_refund,
            "gas_refunded": result.gas_refunded,
            "blob_gas_used": result.blob_gas_used,
            "price": word_to_int(&result.effective_price),
            "created": result.created.b[:20] if result.has_created else None,
            "output": self.machine.output.bytes[:self.machine.output.size],
            "logs": logs,
            "topics": topics,
        }


cdef int set_option(TxOptions* options, str name, bint value) except -1:
    if name == "skip_nonce":
        options.skip_nonce = value
    elif name == "skip_sender_code_check":
        options.skip_sender_code_check = value
    elif name == "skip_gas_cap":
        options.skip_gas_cap = value
    elif name == "skip_block_gas":
        options.skip_block_gas = value
    elif name == "skip_balance":
        options.skip_balance = value
    elif name == "fees_optional":
        options.fees_optional = value
    elif name == "no_coinbase_payment":
        options.no_coinbase_payment = value
    else:
        raise TypeError(f"there is no option {name!r}")
    return 0
