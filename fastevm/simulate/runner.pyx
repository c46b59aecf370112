"""Runs calls on a state without changing it: what all methods of this floor share."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.execution.block cimport BlockBuilder
from fastevm.execution.outcome cimport TX_CANCELLED, TX_VALID, TxOptions, TxResult
from fastevm.execution.refusals cimport refusal
from fastevm.execution.running cimport running_transact
from fastevm.execution.system cimport (
    SYSTEM_DONE,
    SYSTEM_FAILED,
    SYSTEM_NO_CODE,
    SystemOutcome,
)
from fastevm.execution.transaction cimport Transaction, recover_now
from fastevm.interpreter.machine cimport BlockContext, PrecompileMove, status_text
from fastevm.interpreter.status cimport REVERTED, STOPPED
from fastevm.interpreter.tracer cimport StepTrace
from fastevm.precompiles.registry cimport precompile_at
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.intrinsics cimport atomic_store_int
from fastevm.primitives.word cimport Word, word_from_int, word_store
from fastevm.simulate.ledger cimport Ledger, looked_at, warm_entries
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.code cimport Code, code_new, code_retain
from fastevm.state.world cimport (
    Account,
    LogRecord,
    World,
    world_account,
    world_put_account,
    world_put_slot,
    world_reset_storage,
)

from collections.abc import Sequence

from fastevm.simulate.halts import halt_message
from fastevm.wire.text.hex import checksum_address
from fastevm.simulate.revert import revert_message
from fastevm.simulate.values import (
    AccountChange,
    AccountOverride,
    BlockEnvironment,
    CallOutcome,
    SimulatedLog,
    SimulationError,
    StateView,
)
from fastevm.types import Withdrawal

MOVE_LIMIT = 64
TRACE_LIMIT = 16_000_000  # bytes of the records of one call tree


cdef Address address_from(bytes value) except *:
    cdef Address address
    if len(value) != 20:
        raise ValueError(f"an address has 20 bytes, not {len(value)}")
    memcpy(address.b, PyBytes_AS_STRING(value), 20)
    return address


cdef int fill_environment(BlockContext* context, object environment) except -1:
    context.coinbase = address_from(environment.coinbase)
    context.number = environment.number
    context.timestamp = environment.timestamp
    context.gas_limit = environment.gas_limit
    context.chain_id = environment.chain_id
    word_from_int(&context.difficulty, environment.difficulty)
    word_from_int(&context.prev_randao, environment.prev_randao)
    word_from_int(&context.base_fee, environment.base_fee)
    word_from_int(&context.blob_base_fee, environment.blob_base_fee)
    return 0


cdef void simulation_options(TxOptions* options, bint validation) noexcept nogil:
    memset(options, 0, sizeof(TxOptions))
    options.skip_nonce = not validation
    options.skip_sender_code_check = True
    options.skip_gas_cap = True
    options.skip_block_gas = True
    options.fees_optional = not validation


cdef tuple logs_of(const World* w, size_t first, size_t count):
    cdef size_t i
    cdef uint32_t j
    cdef const LogRecord* log
    cdef uint8_t topic[32]
    cdef list found = []
    cdef list topics
    for i in range(first, first + count):
        log = &w.logs[i]
        topics = []
        for j in range(log.topic_count):
            word_store(topic, &log.topics[j])
            topics.append(topic[:32])
        found.append(SimulatedLog(
            log.address.b[:20], tuple(topics), log.data[:log.size], log.index, log.pseudo
        ))
    return tuple(found)


cdef int put_fields(World* w, Account* account, object override) except -1:
    cdef Word balance = account.balance
    cdef uint64_t nonce = account.nonce
    cdef Code* code = account.code
    if override.balance is not None:
        word_from_int(&balance, override.balance)
    if override.nonce is not None:
        nonce = override.nonce
    if override.code is None:
        code_retain(code)
    else:
        code = code_new(
            <const uint8_t*>PyBytes_AS_STRING(override.code), len(override.code), NULL, False
        )
        if code == NULL:
            raise MemoryError
    world_put_account(w, account, &balance, nonce, code)
    return 0


cdef int put_slots(World* w, Account* account, object slots) except -1:
    cdef Word key, value
    account.exists = True
    for slot, content in slots.items():
        word_from_int(&key, slot)
        word_from_int(&value, content)
        if not world_put_slot(w, account, &key, &value):
            raise MemoryError
    return 0


cdef class Runner(BlockBuilder):
    """A block whose calls are simulated; one thread at a time, reused from block to block.

    ``open`` points it at a state, ``override_account`` and ``move_precompile`` change what the
    calls see, ``simulate`` runs one, ``begin`` and ``seal`` are those of any block.
    """

    def __cinit__(self, *args: object, **options: object) -> None:
        self.moves = <PrecompileMove*>PyMem_RawCalloc(MOVE_LIMIT, sizeof(PrecompileMove))
        if self.moves == NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        PyMem_RawFree(self.moves)

    def __init__(self) -> None:
        self.cancelled = False

    def open(
        self,
        view: StateView,
        *,
        trace_transfers: bool = False,
        withdrawals: Sequence[Withdrawal] | None = None,
        environment: BlockEnvironment | None = None,
    ) -> None:
        """Begin a block on the view's state: ``view.header`` is this block's draft, ``ancestors``
        the hashes of the blocks before it. ``environment``: what calls see in the header's place.
        """
        BlockBuilder.__init__(
            self, view.layer, view.header, view.schedule, chain_id=view.config.chain_id,
            deposit_contract=view.config.deposit_contract, ancestors=view.ancestors,
            withdrawals=withdrawals,
        )
        self.optional_contracts = not getattr(view.config, "has_system_contracts", True)
        self.move_count = 0
        self.c.machine.precompile_moves = NULL
        self.c.machine.precompile_move_count = 0
        self.c.machine.cancel = &self.cancelled
        self.c.machine.tracer = NULL
        self.c.world.log_transfers = trace_transfers
        if environment is not None:
            self.set_environment(environment)

    def set_environment(self, environment: BlockEnvironment) -> None:
        """What NUMBER, TIMESTAMP and their like give from now on."""
        fill_environment(&self.c.context, environment)

    def cancel(self) -> None:
        """Stop the call under way at its next jump or call, and every later one; any thread may.
        """
        atomic_store_int(<int*>&self.cancelled, True)

    def rearm(self) -> None:
        """Forget that it was cancelled."""
        atomic_store_int(<int*>&self.cancelled, False)

    @property
    def is_cancelled(self) -> bool:
        """Whether it was told to stop since the last ``rearm``."""
        return self.cancelled

    # --- overrides ---

    cdef Account* account(self, bytes address) except NULL:
        cdef Address key = address_from(address)
        cdef Account* account = world_account(self.c.world, &key)
        if account == NULL:
            raise MemoryError
        return account

    def is_precompile(self, address: bytes) -> bool:
        """Whether the fork has a precompile at the address."""
        cdef Address key = address_from(address)
        return precompile_at(&(<ForkSchedule>self.schedule).c, &key) != 0

    def move_precompile(self, source: bytes | None, address: bytes) -> None:
        """Let the precompile of ``source`` answer at ``address`` (None: nothing answers there)."""
        cdef Address key
        cdef PrecompileMove* move = NULL
        cdef Address target = address_from(address)
        cdef size_t i
        for i in range(self.move_count):
            if self.moves[i].address.b[:20] == address:
                move = &self.moves[i]
        if move == NULL:
            if self.move_count == MOVE_LIMIT:
                raise SimulationError("override", f"more than {MOVE_LIMIT} precompiles moved")
            move = &self.moves[self.move_count]
            self.move_count += 1
        move.address = target
        move.precompile = 0
        if source is not None:
            key = address_from(source)
            move.precompile = precompile_at(&(<ForkSchedule>self.schedule).c, &key)
        self.c.machine.precompile_moves = self.moves
        self.c.machine.precompile_move_count = self.move_count

    def override_account(self, address: bytes, override: AccountOverride) -> None:
        """Set nonce, code, balance and slots as given, as if an earlier transaction had done it."""
        cdef Account* account = self.account(address)
        if (override.nonce, override.code, override.balance) != (None, None, None):
            put_fields(self.c.world, account, override)
        if override.state is not None:
            world_reset_storage(self.c.world, account)
        for slots in (override.state, override.state_diff):
            if slots:
                put_slots(self.c.world, account, slots)

    # --- running ---

    @property
    def gas_left(self) -> int:
        """What the block's gas limit has left."""
        return self.c.context.gas_limit - self.c.gas_used

    def balance(self, address: bytes) -> int:
        """Balance in wei at this point of the block."""
        cdef uint8_t word[32]
        word_store(word, &self.account(address).balance)
        return int.from_bytes(word[:32], "big")

    def nonce(self, address: bytes) -> int:
        """Nonce at this point of the block."""
        return self.account(address).nonce

    def watch_changes(self) -> None:
        """Note the accounts as they are: ``changes`` then tells what the next call changed."""
        if self.ledger is None:
            self.ledger = Ledger()
        self.ledger.take(self.c.world)

    def trace_calls(self, wanted: bool) -> None:
        """Record the frames of the calls that follow, or stop recording."""
        self.c.machine.tracer = NULL
        if wanted:
            if self.recorder is None:
                self.recorder = StepTrace(steps=False, calls=True, limit=TRACE_LIMIT)
            self.recorder.drain()
            self.c.machine.tracer = self.recorder.c

    def frames(self) -> list[dict[str, object]]:
        """The frames recorded since; only after ``trace_calls``."""
        return self.recorder.drain()

    def changes(self) -> dict[bytes, AccountChange]:
        """What the call run last changed; only after ``watch_changes``."""
        return self.ledger.changes(self.c.world)

    def warm(self) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
        """What the call run last has warmed at its end, by address."""
        return tuple(warm_entries(self.c.world))

    def touched(self) -> dict[bytes, list[int]]:
        """Every account that the block has looked at so far, with the slots."""
        return looked_at(self.c.world)

    def simulate(
        self, transaction: Transaction, *, validation: bool, shown: Transaction | None = None
    ) -> CallOutcome:
        """Run one transaction. InvalidTransaction (nothing changed), or SimulationError when
        cancelled.

        Without ``validation`` nonces are free and a price of zero is exempt from the base fee.
        Whether the sender has code, the gas cap of a transaction and the block's gas never matter.
        ``shown`` is what the block holds in the transaction's place.
        """
        cdef Transaction source = transaction
        cdef Transaction listed = transaction if shown is None else shown
        cdef TxOptions options
        cdef TxResult result
        simulation_options(&options, validation)
        recover_now(source)
        with nogil:
            running_transact(&self.c, &source.c, &options, &result)
        if result.error == TX_CANCELLED and not self.cancelled:
            raise SimulationError("trace_limit", f"the call tree takes over {TRACE_LIMIT} bytes")
        if result.error == TX_CANCELLED:
            raise SimulationError("timeout", "execution aborted")
        if result.error != TX_VALID:
            raise refusal(result.error, &source.c, &result)
        self.c.receipts.records[self.c.receipts.count - 1].tx_type = listed.c.tx_type
        self.close_receipt()
        self.added.append(listed)
        return self.outcome(&result)

    cdef bytes request(self, str contract):
        cdef SystemOutcome outcome = self.call(contract, b"")
        cdef const Buffer* output = &self.c.machine.output
        if outcome == SYSTEM_DONE:
            return output.bytes[:output.size] if output.size else b""
        if outcome == SYSTEM_NO_CODE and self.optional_contracts:
            return b""
        queue = "withdrawal" if contract.startswith("WITHDRAWAL") else "consolidation"
        address = checksum_address(self.schedule.system_contracts[contract])
        fault = f"empty system contract: no code at {address}"
        if outcome == SYSTEM_FAILED:
            text = status_text(self.c.machine.status).decode()
            fault = f"system call failed to execute: {text}"
        raise SimulationError("override", f"failed to process {queue} queue: {fault}")

    cdef object outcome(self, const TxResult* result):
        """What a finished call gave, as a value."""
        cdef object output = b""
        cdef str error = None
        cdef bint reverted = result.status == REVERTED
        cdef bint success = result.status == STOPPED
        if (success or reverted) and self.c.machine.output.size:
            output = self.c.machine.output.bytes[:self.c.machine.output.size]
        if reverted:
            error = revert_message(output)
        elif not success:
            error = halt_message(
                status_text(result.status).decode(), self.c.machine.halt_opcode,
                self.c.machine.halt_height,
            )
        return CallOutcome(
            success=success,
            reverted=reverted,
            output=output,
            error=error,
            gas_used=result.gas_used,
            max_used_gas=result.gas_before_refund,
            logs=logs_of(self.c.world, result.first_log, result.log_count),
            created=result.created.b[:20] if result.has_created else None,
        )
