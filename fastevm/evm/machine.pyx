"""``EVM``: an in-memory EVM for Python."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.evm.base cimport EvmBase
from fastevm.evm.result cimport ExecutionResult
from fastevm.core.execution.transaction.arguments cimport (
    gas_of, hash_run, hashes_in, integer, word_argument,
)
from fastevm.core.execution.transaction.message_setup cimport MessageSetup
from fastevm.core.execution.transaction.refusals cimport refusal, unsupported
from fastevm.core.execution.transaction.transact cimport (
    TxRun, transact_abandon, transact_begin, transact_run,
)
from fastevm.core.execution.transaction.transaction cimport Transaction
from fastevm.core.execution.transaction.transaction_result cimport TX_PAUSED, TX_VALID, TxError, TxResult
from fastevm.core.primitives.cancellation cimport NO_REQUEST, PAUSE_REQUEST
from fastevm.core.interpreter.interrupts cimport (
    LONG_RUN_GAS, begin_interruptible, serve_signals,
)
from fastevm.core.interpreter.machine cimport (
    CALL_MESSAGE,
    Machine,
    Message,
    TransactionContext,
    machine_run,
    machine_start,
    status_text,
)
from fastevm.core.interpreter.status cimport (
    HOST_CALL, NEEDS_STATE, OUT_OF_MEMORY, REVERTED, RUNNING, STOPPED, TRACE_FULL, UNSUPPORTED,
    Status,
)
from fastevm.core.execution.block.packed_logs cimport pack_logs
from fastevm.core.primitives.bytes_like cimport address_bytes, bytes_like, parse_address
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport atomic_load_int, atomic_store_int
from fastevm.core.primitives.word cimport word_is_zero, word_lt, word_to_int, word_zero
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.remote_cache cimport misses_of_thread
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.remote cimport RemoteState
from fastevm.core.state.world cimport (
    Account,
    World,
    world_account,
    world_begin,
    world_begin_transaction,
    world_end_transaction,
    world_follow,
    world_set_balance,
    world_warm_account,
)

from importlib import import_module

from fastevm.errors import FastevmError
from fastevm.evm.base import ENVIRONMENT
from fastevm.evm.signatures import show_signatures
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.simulation.revert import revert_message
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.source import Wanted, call_object


# Imported on first use.
DEADLINES = "fastevm.core.simulation.deadline"
CREATION = "fastevm.evm.creation"
TRACES = "fastevm.tracing.evm_traces"
# With more gas, an execution may take longer than a tenth of a second, so it checks for signals.
cdef int64_t SHORT_RUN_GAS = 30_000_000
ZERO_ADDRESS = bytes(20)

# The block environment of a new machine; other fields are zero.
FIRST_BLOCK = {
    "chain_id": 1,
    "number": 1,
    "timestamp": 1,
    "gas_limit": 30_000_000,
    "blob_base_fee": 1,
}

cdef int64_t HIGHEST_GAS = 0x7fffffffffffffff
# Shared default values of arguments, so that identity checks are cheap.
cdef object FREE = 0
cdef tuple NO_HASHES = ()
cdef Layer EMPTY = Layer.empty()
# Kept for backward compatibility.
globals()["ExecutionResult"] = ExecutionResult


cdef inline int read_message(
    Message* out, object to, bytes data, object sender, object value, object gas
) except -1:
    """Fills in a message. ``data`` must stay alive until the execution ends."""
    out.kind = CALL_MESSAGE
    parse_address(to, &out.recipient, "to")
    parse_address(sender, &out.sender, "sender")
    if value is not FREE:
        word_argument(&out.value, value, "value")
    out.data = <const uint8_t*>PyBytes_AS_STRING(data)
    out.size = PyBytes_GET_SIZE(data)
    out.gas = gas_of(gas)
    return 0


cdef inline int read_terms(
    TransactionContext* out, const Address* sender, object origin, object price, bytes hashes
) except -1:
    """Fills in the context that code sees. ``hashes`` must stay alive until the execution ends."""
    out.origin = sender[0]
    if origin is not None:
        parse_address(origin, &out.origin, "origin")
    if price is FREE:
        word_zero(&out.gas_price)
    else:
        word_argument(&out.gas_price, price, "gas_price")
    out.blob_hashes = <const Hash*>PyBytes_AS_STRING(hashes)
    out.blob_hash_count = <uint32_t>(PyBytes_GET_SIZE(hashes) // 32)
    return 0


cdef inline bint warm(World* w, const Address* address) noexcept nogil:
    """Warms an account. Returns False if memory is exhausted."""
    cdef Account* account = world_account(w, address)
    if account != NULL:
        world_warm_account(w, account)
    return account != NULL


cdef bint has_changed(const World* w) noexcept nogil:
    """Whether committing the world would change the layer."""
    cdef size_t i
    for i in range(w.account_count):
        if w.account_list[i].dirty:
            return True
    return False


cdef class EVM(EvmBase):
    """EVM(fork='osaka', *, state=None, unchecked=(), code_size_limit=None, chain_id=1, number=1, \
timestamp=1, gas_limit=30000000, coinbase='0x0000000000000000000000000000000000000000', \
base_fee=0, blob_base_fee=1, difficulty=0, prev_randao=0, slot_number=0, block_hashes=())
--

An EVM over a state in memory.

    ``fork``: a name or a schedule; ``state``: a Layer (default: empty); ``environment``: the
    block that code sees, as for ``set_block``; ``unchecked`` and ``code_size_limit``: see the
    properties. Raises UnknownForkError, with a suggestion, and TypeError for an unknown field of
    the environment.

    Only one thread may use an object at a time: while it executes code, calls and changes from
    other threads raise RuntimeError. The ``state`` is immutable, and any number of machines may
    share it. Long executions on the main thread handle Ctrl-C and SIGTERM.
    """

    def __init__(
        self,
        fork: str | ForkSchedule = "osaka",
        *,
        state: Layer | None = None,
        unchecked: object = (),
        code_size_limit: object = None,
        **environment: object,
    ) -> None:
        """``fork``: a name or a schedule; ``environment``: as for ``set_block``."""
        if not isinstance(fork, str | ForkSchedule):
            raise TypeError(f"a fork is a name or a ForkSchedule, not {type(fork).__name__}")
        schedule = fork if isinstance(fork, ForkSchedule) else schedule_for(fork)
        self.set_block(**(FIRST_BLOCK | environment))
        self.set_schedule(schedule)
        self.state = EMPTY if state is None else state
        self.unchecked = unchecked
        self.code_size_limit = code_size_limit
        self.layers = []

    @classmethod
    def fork(
        cls, url: object, block: object = "latest", *, tx_index: object = None,
        hardfork: object = None, **options: object,
    ) -> EVM:
        """Returns an EVM on the state of another node, fetched when it is read.

        - ``url``: a JSON-RPC endpoint, or several endpoints of the same chain
        - ``block``: selects the state and the block environment: a number, a hash, "latest",
          "safe", "finalized", a negative distance from the newest block, or "pending". For
          "pending", this process executes the transactions of the endpoint's pending block on the
          newest state.
        - ``tx_index``: use the state before this transaction of the block
        - ``hardfork``: rules for a chain with an unknown chain id
        - ``options``: such as ``headers``, ``cache`` and ``offline``, see
          `fastevm.fork.RemoteSource.open`

        Request counters are in ``state.remote_state.source.counters``. Raises ForkError if the
        endpoint does not answer.
        """
        # Imported here because `fork` is a higher level than `evm`.
        fork = import_module("fastevm.fork")
        return fork.forked_evm(
            cls, url, block, tx_index=tx_index, hardfork=hardfork, **options
        )

    def fork_at(self, block: object, *, tx_index: object = None) -> EVM:
        """Returns a fork of the same chain at another block, over the same connections.

        ``block`` and ``tx_index``: as for ``fork``. This machine does not change. The new machine
        has its ``unchecked`` and ``code_size_limit``, but not its local changes. Known accounts and
        slots are not fetched again if they did not change between the two blocks: a batch of
        eth_getProof shows which changed, verified against the state roots of both blocks. If the
        endpoint does not serve eth_getProof, or its state roots are not real, all values are
        fetched again. Raises ForkError if this machine is not a fork or has no such block.
        """
        return import_module("fastevm.fork").moved_evm(self, block, tx_index=tx_index)

    cdef int begin(self, int64_t gas) except -1:
        """Reserves the machine for this thread and attaches the world to the state.

        The caller must call ``end``, unless this raises. Until then, nothing replaces the state.
        """
        cdef Reader reader
        memset(&reader, 0, sizeof(reader))
        if self.running:
            self.check_idle()
        self.running = True
        self.machine.cancel = &self.pause
        if gas > SHORT_RUN_GAS:
            begin_interruptible(self.machine, gas > LONG_RUN_GAS)
        self.pause_request = <int*>self.machine.cancel
        if atomic_load_int(&self.overdue):
            atomic_store_int(self.pause_request, PAUSE_REQUEST)  # requested before this attempt
        if self.host is not None:
            self.machine.precompile_moves = self.host.moves
            self.machine.precompile_move_count = self.host.count
        self.layer.attach(&reader)
        world_begin(self.world, &reader)
        world_follow(self.world, &self.schedule.c)
        self.machine.world = self.world
        self.machine.schedule = &self.schedule.c
        self.machine.block = &self.context
        self.machine.transaction = &self.transaction
        if self.watch is not None:
            self.active = self.watch
            try:
                self.active.begin(self.machine)
            except BaseException:
                self.end()
                raise
        return 0

    cdef int end(self) except -1:
        self.pause_request = NULL
        self.running = False
        self.machine.cancel = NULL
        self.machine.tracer = NULL
        if self.active is not None:
            self.active = None
        return 0

    def cancel(self) -> None:
        """Ends the current execution without changes. The execution raises SimulationError.

        Any thread may call it. Without an execution in progress, it has no effect.
        """
        cdef int* request = self.pause_request
        atomic_store_int(&self.overdue, True)
        if request != NULL:
            atomic_store_int(request, PAUSE_REQUEST)

    def rearm(self) -> None:
        """Clears a request to end the execution."""
        self.clear_requests()

    def set_deadline(self, deadline: object) -> object:
        """Prepares an execution with a time limit. Returns a listener, which the deadline calls."""
        self.rearm()
        if deadline.is_cancelled:
            self.cancel()
        return self

    cdef int serve(self, Status status) except -1:
        """Serves a pause: reads trace records, runs Python callables, or ends an execution that is
        overdue.
        """
        if status == TRACE_FULL or status == HOST_CALL:
            self.is_calling = True
            try:
                if status == HOST_CALL:
                    self.host.answer(self.machine)
                else:
                    self.active.read(self.machine)
            finally:
                self.is_calling = False
        if self.machine.cancel == &self.pause:
            atomic_store_int(<int*>&self.pause, NO_REQUEST)
        else:
            serve_signals()
        if atomic_load_int(&self.overdue):
            raise import_module(DEADLINES).out_of_time(self.time_limit)
        return 0

    cdef int finish_watch(self) except -1:
        self.is_calling = True
        try:
            self.active.finish(self.machine)
        finally:
            self.is_calling = False
        return 0

    cdef object limited(self, object timeout, object run, tuple args, dict options):
        """Returns ``run(self, ...)``; raises SimulationError after ``timeout`` seconds."""
        seconds = float("inf") if timeout is None else float(timeout)
        self.check_idle()
        self.time_limit = seconds
        try:
            with import_module(DEADLINES).time_limit(self, seconds):
                return run(self, *args, **options)
        finally:
            self.time_limit = None

    cdef object special(self, tuple wishes, object run, tuple args, dict options):
        """Returns ``run(self, ...)`` with a time limit, a trace or an access list."""
        timeout, trace, access_list = wishes
        if access_list is not None:
            return self.listed(access_list, run, args, options, timeout, trace)
        if trace is None:
            return self.limited(timeout, run, args, options)
        if timeout is not None:
            options["timeout"] = timeout
        self.check_idle()
        return import_module(TRACES).run_traced(self, trace, run, args, options)

    cdef object listed(
        self, object access_list, object run, tuple args, dict options, object timeout,
        object trace
    ):
        """Returns ``run(self, ...)`` with the accounts and slots of an access list warm."""
        cdef MessageSetup usual = self.setup
        cdef MessageSetup setup = MessageSetup(
            {} if usual is None else usual.transient, access_list
        )
        self.check_idle()
        self.setup = setup
        try:
            return run(self, *args, timeout=timeout, trace=trace, **options)
        finally:
            self.setup = usual if usual is None else MessageSetup(setup.transient)

    cdef int afford(self, const Message* message) except -1:
        """Increases the sender's balance if it does not cover the value."""
        cdef Account* account = world_account(self.world, &message.sender)
        if account == NULL:
            raise MemoryError
        if word_lt(&account.balance, &message.value):
            if not world_set_balance(self.world, account, &message.value):
                raise MemoryError
        return 0

    cdef ExecutionResult result_of(self, Status status):
        """Returns a result with the fields common to all kinds of execution."""
        cdef ExecutionResult result = ExecutionResult.__new__(ExecutionResult)
        cdef Machine* m = self.machine
        if status == OUT_OF_MEMORY:
            raise MemoryError
        if status == UNSUPPORTED:
            raise unsupported(m.refused, &m.refused_at)
        result.success = status == STOPPED
        result.log_values = ()
        result.output = b""
        if result.success or status == REVERTED:
            result.output = m.output.bytes[:m.output.size] if m.output.size else b""
        if result.success:
            if self.world.log_count:
                result.packed_logs = pack_logs(self.world)
                result.log_values = None
        elif status == REVERTED:
            result.error = revert_message(result.output)
        else:
            result.error = status_text(status).decode()
        return result

    def call(
        self, to: bytes | str, data: bytes | str = b"", *, sender: bytes | str = ZERO_ADDRESS,
        value: object = 0, gas: object = 30_000_000, gas_price: object = 0,
        origin: bytes | str | None = None, static: bool = False, commit: bool = False,
        blob_hashes: object = (), access_list: object = None, timeout: object = None,
        trace: object = None,
    ) -> ExecutionResult:
        """Runs a message call; keeps its changes if ``commit`` is true, else discards them.

        Charges no intrinsic gas or fees and does not change a nonce.

        - ``origin``: the result of ORIGIN (default: the sender)
        - ``static``: forbids a value and changes of state, like STATICCALL
        - ``blob_hashes``: the results of BLOBHASH, 32 bytes each
        - ``access_list``: pairs of an address and slots that are warm from the start, at no cost
        - ``timeout``: seconds after which SimulationError is raised
        - ``trace``: selects the content of ``result.trace``, see `fastevm.tracing.evm_traces`

        In the result, ``gas_used`` is the gas of the frame before refunds and ``gas_refunded`` the
        final refund counter. A failed call is a result with ``success`` False and an ``error``.
        Exceptions mean that an argument is invalid, or that the call reaches a contract that
        fastevm cannot run (InvalidTransaction with the code "unsupported").
        """
        cdef Message message
        cdef TransactionContext terms
        memset(&message, 0, sizeof(message))
        memset(&terms, 0, sizeof(terms))
        cdef bytes payload = bytes_like(data, "data")
        cdef bytes hashes = b"" if blob_hashes is NO_HASHES else hash_run(blob_hashes)
        if self.is_limited(timeout) or trace is not None or access_list is not None:
            return self.special((timeout, trace, access_list), EVM.call, (to, data), {
                "sender": sender, "value": value, "gas": gas, "gas_price": gas_price,
                "origin": origin, "static": static, "commit": commit,
                "blob_hashes": hashes_in(hashes),
            })
        message.is_static = static
        read_message(&message, to, payload, sender, value, gas)
        if static and not word_is_zero(&message.value):
            raise ValueError("a static call cannot carry value")
        read_terms(&terms, &message.sender, origin, gas_price, hashes)
        return self.message(&message, &terms, payload, commit is not False and commit)

    cdef ExecutionResult message(
        self, const Message* message, const TransactionContext* terms, bytes data, bint commit
    ):
        """Runs a message with ``data`` as input. Keeps its changes if ``commit``."""
        self.forget_requests()
        if self.layer.remote_state is None:
            result = self.run(message, terms)
        else:
            result = self.run_resolved(message, terms, data)
        if commit and result.success:
            self.keep()
        return result

    cdef int keep(self) except -1:
        """Ends the transaction of the last message and keeps its changes."""
        cdef bint ok
        cdef MessageSetup setup
        if self.setup is not None:
            setup = self.setup
            setup.remember(self.world)
        with nogil:
            ok = world_end_transaction(self.world)
        if not ok:
            raise MemoryError
        if has_changed(self.world):
            self.layer = self.layer.commit(self.world)
        return 0

    cdef ExecutionResult run_resolved(
        self, const Message* message, const TransactionContext* terms, bytes data
    ):
        """Runs a message over a remote state, repeatedly until it guesses no value."""
        cdef RemoteState remote = self.layer.remote_state
        cdef uint64_t before
        cdef bint is_first = True
        while True:
            before = misses_of_thread()
            try:
                result = self.run(message, terms)
            except Exception:
                if misses_of_thread() == before:
                    raise
            else:
                if misses_of_thread() == before:
                    return result
            remote.fetch_missing((call_object(
                message.sender.b[:20], message.recipient.b[:20], data, word_to_int(&message.value)
            ),) if is_first and message.kind == CALL_MESSAGE else ())
            is_first = False

    cdef ExecutionResult run(self, const Message* message, const TransactionContext* terms):
        """Runs a message in a separate transaction, which the caller ends."""
        cdef Status status
        cdef ExecutionResult result
        cdef MessageSetup setup
        self.begin(message.gas)
        try:
            self.transaction = terms[0]
            world_begin_transaction(self.world)
            if not (
                warm(self.world, &message.sender) and warm(self.world, &message.recipient)
            ):
                raise MemoryError
            if self.schedule.c.warm_coinbase:
                self.world.warm_coinbase = &self.context.coinbase
            if self.setup is not None:
                setup = self.setup  # another thread may replace it
                setup.apply(self.world, message)
            if self.options.skip_balance:
                self.afford(message)
            with nogil:
                status = machine_start(self.machine, message)
                if status == RUNNING:
                    status = machine_run(self.machine)
            while NEEDS_STATE < status <= HOST_CALL:
                self.serve(status)
                with nogil:
                    status = machine_run(self.machine)
            if self.active is not None:
                self.finish_watch()
            result = self.result_of(status)
            result.gas_used = message.gas - self.machine.gas_left
            result.gas_refunded = self.world.refund
            return result
        finally:
            self.transaction.blob_hashes = NULL
            self.end()

    def transact(
        self, to: bytes | str | None = None, data: bytes | str = b"", *,
        sender: bytes | str = ZERO_ADDRESS, value: object = 0, gas: object = None,
        gas_price: object = None, nonce: object = None, chain_id: object = None,
        timeout: object = None, trace: object = None, **fields: object,
    ) -> ExecutionResult:
        """Executes a transaction (``to`` None creates a contract) and keeps its changes.

        Validity, intrinsic gas, fees, refunds and the nonce follow the rules of the fork; no
        signature is needed.

        - ``gas``: the gas limit; by default the maximum that the block and the fork allow
        - ``chain_id``: by default that of the machine
        - ``fields``: further fields of ``Transaction.build``, such as ``max_fee_per_gas``,
          ``access_list`` or ``authorization_list``; without ``type``, they select the type

        Raises InvalidTransaction, without changes, if no block could contain the transaction,
        TypeError for fields that do not go together, and SimulationError after ``timeout`` seconds.
        """
        if self.is_limited(timeout) or trace is not None:
            return self.special((timeout, trace, None), EVM.transact, (to, data), {
                "sender": sender, "value": value, "gas": gas, "gas_price": gas_price,
                "nonce": nonce, "chain_id": chain_id, **fields,
            })
        address = address_bytes(sender, "sender")
        target = None if to is None else address_bytes(to, "to")
        payload = bytes_like(data, "data")
        amount = integer(value, "value")
        if gas_price is not None:
            fields["gas_price"] = integer(gas_price, "gas_price")
        if chain_id is None:
            chain_id = self.context.chain_id
        if gas is None:
            gas = self.most_gas()
        if self.layer.remote_state is not None:
            self.ask_ahead(address, target, payload, amount)
        if nonce is None:
            nonce = self.layer.nonce(address)
        transaction = Transaction.build(
            sender=address, to=target, data=payload, value=amount, chain_id=chain_id,
            gas_limit=integer(gas, "gas"), nonce=integer(nonce, "nonce"), **fields,
        )
        return self.execute(transaction)

    def most_gas(self) -> int:
        """The maximum gas limit of a transaction: the lower of the block's and the fork's."""
        cdef uint64_t cap = <uint64_t>self.schedule.c.tx_gas_cap
        if self.schedule.c.state_gas_version != 0:
            cap = <uint64_t>self.schedule.c.tx_total_gas_cap
        if cap == 0 or self.options.skip_gas_cap:
            return self.context.gas_limit
        return min(self.context.gas_limit, cap)

    def execute(
        self, transaction: Transaction, *, timeout: object = None, trace: object = None
    ) -> ExecutionResult:
        """Executes a signed or built transaction and keeps its changes; see ``transact``."""
        cdef Transaction source = transaction
        if self.is_limited(timeout) or trace is not None:
            return self.special((timeout, trace, None), EVM.execute, (transaction,), {})
        cdef RemoteState remote = self.layer.remote_state
        cdef uint64_t before
        recover_senders([source], threads=1)
        self.forget_requests()
        while True:
            before = misses_of_thread()
            try:
                return self.run_transaction(source, before)
            except Exception:
                if misses_of_thread() == before:
                    raise
            remote.fetch_missing()

    cdef ExecutionResult run_transaction(self, Transaction source, uint64_t misses):
        """Executes a transaction and keeps its changes.

        ``misses``: `misses_of_thread` before the call. Raises FastevmError if the execution guessed
        an unknown value.
        """
        cdef TxResult outcome
        cdef TxRun run
        cdef TxError error
        memset(&outcome, 0, sizeof(outcome))
        memset(&run, 0, sizeof(run))
        self.begin(HIGHEST_GAS if source.c.gas_limit >> 63 else <int64_t>source.c.gas_limit)
        try:
            with nogil:
                error = transact_begin(
                    self.machine, &source.c, &self.options, self.context.gas_limit, &run, &outcome
                )
                if error == TX_VALID:
                    error = transact_run(self.machine, &run, &outcome)
            while error == TX_PAUSED:
                self.serve_or_abandon(&run)
                with nogil:
                    error = transact_run(self.machine, &run, &outcome)
            if error != TX_VALID:
                raise refusal(error, &source.c, &outcome)
            if self.active is not None:
                self.finish_watch()
            result = self.result_of(outcome.status)
            result.gas_used = outcome.gas_used
            result.gas_refunded = outcome.gas_refunded
            if outcome.has_created and result.success:
                result.created_address = outcome.created.b[:20]
            if misses_of_thread() != misses:
                raise FastevmError("the run guessed values of the remote state")
            self.layer = self.layer.commit(self.world)
            return result
        finally:
            self.machine.transaction = NULL
            self.end()

    cdef int ask_ahead(self, bytes sender, object to, bytes data, object value) except -1:
        """Prefetches the values that every transaction reads, and those the endpoint predicts."""
        cdef RemoteState remote = self.layer.remote_state
        accounts = {sender, self.context.coinbase.b[:20]}
        if to is not None:
            accounts.add(to)
        remote.fetch(Wanted(accounts, calls=[call_object(sender, to, data, value)]))
        return 0

    cdef int serve_or_abandon(self, TxRun* run) except -1:
        """Runs Python's signal handlers. If a handler raises, abandons the transaction."""
        try:
            self.serve(run.pause)
        except BaseException:
            transact_abandon(self.machine, run)
            raise
        return 0

    def create(
        self, initcode: bytes | str, *, sender: bytes | str = ZERO_ADDRESS, value: object = 0,
        gas: object = 30_000_000, gas_price: object = 0, address: bytes | str | None = None,
        origin: bytes | str | None = None, commit: bool = False, blob_hashes: object = (),
        access_list: object = None, timeout: object = None, trace: object = None,
    ) -> ExecutionResult:
        """Runs init code as a message; keeps its changes if ``commit`` is true.

        ``created_address`` of the result is ``address``, or the address from the sender and its
        nonce, which increases by 1. Charges no intrinsic gas or fees, and the size of init code is
        not limited. Otherwise like ``call``.
        """
        return import_module(CREATION).create(
            self, initcode, sender=sender, value=value, gas=gas, gas_price=gas_price,
            address=address, origin=origin, commit=commit, blob_hashes=blob_hashes,
            access_list=access_list, timeout=timeout, trace=trace,
        )

    def deploy(self, initcode: bytes | str, **fields: object) -> ExecutionResult:
        """Executes a creation transaction; see ``transact``. The result has ``created_address``."""
        return self.transact(None, initcode, **fields)


show_signatures(EVM, ENVIRONMENT)
