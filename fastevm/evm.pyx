"""``EVM``: an in-memory Ethereum machine to call from Python."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.execution.arguments cimport (
    ancestor_hashes, as_bytes, gas_of, hash_run, integer, parse_address, unknown_name,
)
from fastevm.execution.message_setup cimport MessageSetup
from fastevm.execution.refusals cimport refusal
from fastevm.execution.transact cimport (
    TxRun, transact_abandon, transact_begin, transact_run,
)
from fastevm.execution.transaction cimport Transaction
from fastevm.execution.transaction_result cimport TX_PAUSED, TX_VALID, TxError, TxResult
from fastevm.interpreter.cancellation cimport NO_REQUEST, PAUSE_REQUEST
from fastevm.interpreter.interrupts cimport (
    LONG_RUN_GAS, begin_interruptible, serve_signals,
)
from fastevm.interpreter.machine cimport (
    CALL_MESSAGE,
    Message,
    TransactionContext,
    machine_free,
    machine_new,
    machine_run,
    machine_start,
    status_text,
)
from fastevm.interpreter.status cimport (
    OUT_OF_MEMORY, REVERTED, RUNNING, STOPPED, SUSPENDED, TRACE_FULL, Status,
)
from fastevm.execution.packed_logs cimport pack_logs, unpack_logs
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.primitives.intrinsics cimport atomic_load_int, atomic_store_int
from fastevm.primitives.word cimport word_from_int, word_to_int, word_zero
from fastevm.spec.schedule cimport ForkSchedule
from fastevm.state.known cimport misses_of_thread
from fastevm.state.layer cimport Layer
from fastevm.state.reader cimport Reader
from fastevm.state.remote cimport RemoteState
from fastevm.state.world cimport (
    Account,
    world_account,
    world_begin,
    world_begin_transaction,
    world_end_transaction,
    world_follow,
    world_free,
    world_new,
    world_warm_account,
)

from collections.abc import Mapping
from copyreg import __newobj__
from importlib import import_module

from fastevm.errors import FastevmError
from fastevm.evm_snapshot import Remembered, Snapshot
from fastevm.execution.senders import recover_senders
from fastevm.simulate.engine.revert import revert_message
from fastevm.spec.schedule import schedule_for
from fastevm.state.source import Wanted, call_object
from fastevm.types import Log


ANCESTOR_LIMIT = 256
# Loaded with the first time limit.
DEADLINES = "fastevm.simulate.engine.deadline"
CREATION = "fastevm.evm_creation"
SHOWN_OUTPUT = 64  # bytes of an output that a repr shows
# Runs with more gas can last seconds: they serve signals meanwhile.
cdef int64_t SHORT_RUN_GAS = 30_000_000
ZERO_ADDRESS = bytes(20)

# The block environment of a new machine; what is not named is zero.
FIRST_BLOCK = {
    "chain_id": 1,
    "number": 1,
    "timestamp": 1,
    "gas_limit": 30_000_000,
    "blob_base_fee": 1,
}

ENVIRONMENT = (
    "number", "timestamp", "gas_limit", "chain_id", "coinbase", "base_fee", "blob_base_fee",
    "difficulty", "prev_randao", "slot_number", "block_hashes",
)

cdef int64_t HIGHEST_GAS = 0x7fffffffffffffff
# The usual values of arguments, each one object.
cdef object FREE = 0
cdef tuple NO_HASHES = ()
cdef Layer EMPTY = Layer.empty()
cdef ForkSchedule DEFAULT_SCHEDULE = schedule_for("osaka")


cdef class ExecutionResult:
    def __init__(self) -> None:
        raise TypeError("results come from EVM.call, EVM.transact and EVM.deploy")

    @property
    def logs(self) -> tuple[Log, ...]:
        """The logs of a successful execution in their order."""
        if self.log_values is None:
            self.log_values = unpack_logs(self.packed_logs)
            self.packed_logs = None
        return self.log_values

    def __repr__(self) -> str:
        outcome = "success" if self.success else f"error={self.error!r}"
        output = self.output or b""
        shown = f"0x{output.hex()}"
        if len(output) > SHOWN_OUTPUT:
            shown = f"0x{output[:SHOWN_OUTPUT].hex()}... ({len(output)} bytes)"
        if self.created_address is not None:
            outcome += f", created_address=0x{self.created_address.hex()}"
        return f"ExecutionResult({outcome}, gas_used={self.gas_used}, output={shown})"

    cdef tuple values(self):
        return (
            self.success, self.output, self.gas_used, self.gas_refunded, self.logs, self.error,
            self.created_address,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionResult):
            return NotImplemented
        return self.values() == (<ExecutionResult>other).values()

    def __hash__(self) -> int:
        return hash(self.values())

    def __reduce__(self) -> object:
        return restore_result, self.values()


def restore_result(
    success: bool, output: bytes | None, gas_used: object, gas_refunded: object,
    logs: tuple[Log, ...], error: str | None, created_address: bytes | None,
) -> ExecutionResult:
    """Unpickle a result."""
    cdef ExecutionResult result = ExecutionResult.__new__(ExecutionResult)
    result.success = success
    result.output = output
    result.gas_used, result.gas_refunded = gas_used, gas_refunded
    result.log_values = logs
    result.error = error
    result.created_address = created_address
    return result


cdef inline int read_message(
    Message* out, object to, bytes data, object sender, object value, object gas
) except -1:
    """Who calls whom; ``data`` must outlive the run."""
    out.kind = CALL_MESSAGE
    parse_address(to, &out.recipient)
    parse_address(sender, &out.sender)
    if value is not FREE:
        word_from_int(&out.value, integer(value, "value"))
    out.data = <const uint8_t*>PyBytes_AS_STRING(data)
    out.size = PyBytes_GET_SIZE(data)
    out.gas = gas_of(gas)
    return 0


cdef inline int read_terms(
    TransactionContext* out, const Address* sender, object origin, object price, bytes hashes
) except -1:
    """What code sees of the transaction; ``hashes`` must outlive the run."""
    out.origin = sender[0]
    if origin is not None:
        parse_address(origin, &out.origin)
    if price is FREE:
        word_zero(&out.gas_price)
    else:
        word_from_int(&out.gas_price, integer(price, "gas_price"))
    out.blob_hashes = <const Hash*>PyBytes_AS_STRING(hashes)
    out.blob_hash_count = <uint32_t>(PyBytes_GET_SIZE(hashes) // 32)
    return 0


cdef object ENVIRONMENT_CLASS = None


cdef object environment_class():
    """`BlockEnvironment`, loaded when it is first asked for: its module takes 20 ms."""
    global ENVIRONMENT_CLASS
    if ENVIRONMENT_CLASS is None:
        ENVIRONMENT_CLASS = import_module("fastevm.simulate.values").BlockEnvironment
    return ENVIRONMENT_CLASS


cdef class EVM:
    """EVM(fork='osaka', *, state=None, **environment)
--

An Ethereum machine over a state in memory.

    ``fork``: a name or a schedule; ``state``: a Layer, else an empty one; ``environment``: the
    block that code sees, as for ``set_block``. UnknownForkError with a suggestion, TypeError for an
    unknown part of the environment.

    One object belongs to one thread at a time: while it runs code, other threads that run code on
    it or change it get a RuntimeError. The ``state`` is immutable and may be shared between any
    number of machines. Code that lasts serves Ctrl-C and SIGTERM meanwhile, on the main thread.
    """

    def __cinit__(self) -> None:
        self.world = world_new()
        self.machine = machine_new()
        self.ancestors = <Hash*>PyMem_RawCalloc(ANCESTOR_LIMIT, sizeof(Hash))
        if self.world == NULL or self.machine == NULL or self.ancestors == NULL:
            raise MemoryError
        self.context.ancestors = self.ancestors
        self.layer = EMPTY
        self.schedule = DEFAULT_SCHEDULE
        self.layers = []
        self.snapshot_count = 0

    def __dealloc__(self) -> None:
        machine_free(self.machine)
        world_free(self.world)
        PyMem_RawFree(self.ancestors)

    def __init__(
        self,
        fork: str | ForkSchedule = "osaka",
        *,
        state: Layer | None = None,
        **environment: object,
    ) -> None:
        """``fork`` by name or as a schedule; ``environment`` as for ``set_block``."""
        if not isinstance(fork, str | ForkSchedule):
            raise TypeError(f"a fork is a name or a ForkSchedule, not {type(fork).__name__}")
        schedule = fork if isinstance(fork, ForkSchedule) else schedule_for(fork)
        self.set_block(**(FIRST_BLOCK | environment))
        self.schedule = schedule
        self.state = EMPTY if state is None else state
        self.layers = []

    @classmethod
    def fork(
        cls, url: object, block: object = "latest", *, tx_index: object = None,
        hardfork: object = None, **options: object,
    ) -> EVM:
        """A machine on the state that another node holds, fetched as it is read. See the stub."""
        # The floor of the network lies above this one.
        fork = import_module("fastevm.fork")
        return fork.forked_evm(
            cls, url, block, tx_index=tx_index, hardfork=hardfork, **options
        )

    cdef int check_idle(self) except -1:
        """RuntimeError while code runs: nothing may change under it."""
        if self.running:
            raise RuntimeError("this EVM is running code; give each thread an EVM of its own")
        return 0

    @property
    def state(self) -> Layer:
        """The state that code reads and transactions move on; any ``Layer`` may be set."""
        return self.layer

    @state.setter
    def state(self, layer: Layer) -> None:
        if not isinstance(layer, Layer):
            raise TypeError(f"a state is a Layer, not {type(layer).__name__}")
        self.check_idle()
        self.layer = layer

    @state.deleter
    def state(self) -> None:
        raise AttributeError("an EVM always has a state")

    @property
    def snapshots(self) -> tuple[Layer, ...]:
        """The states that ``revert`` can go back to, the oldest first."""
        return tuple([found.state for found in self.layers])

    @property
    def snapshot_numbers(self) -> tuple[int, ...]:
        """Their numbers, in the same order."""
        return tuple([found.number for found in self.layers])

    def set_block(self, **fields: object) -> None:
        """Change parts of the block environment; what is not named stays.

        ``number``, ``timestamp`` (seconds), ``gas_limit``, ``chain_id``, ``slot_number``: below
        2**64. ``coinbase``: an address. ``base_fee``, ``blob_base_fee`` (wei), ``difficulty``,
        ``prev_randao``: below 2**256. ``block_hashes``: up to 256 hashes of the blocks before, the
        parent's first. TypeError for another name; nothing has changed after an error.
        """
        cdef BlockContext block = self.context
        cdef list hashes = ancestor_hashes(fields.get("block_hashes", ()))
        for name, value in fields.items():
            if name == "number":
                block.number = integer(value, name)
            elif name == "timestamp":
                block.timestamp = integer(value, name)
            elif name == "gas_limit":
                block.gas_limit = integer(value, name)
            elif name == "chain_id":
                block.chain_id = integer(value, name)
            elif name == "coinbase":
                parse_address(value, &block.coinbase)
            elif name == "base_fee":
                word_from_int(&block.base_fee, integer(value, name))
            elif name == "blob_base_fee":
                word_from_int(&block.blob_base_fee, integer(value, name))
            elif name == "difficulty":
                word_from_int(&block.difficulty, integer(value, name))
            elif name == "prev_randao":
                word_from_int(&block.prev_randao, integer(value, name))
            elif name == "slot_number":
                block.slot_number = integer(value, name)
            elif name != "block_hashes":
                raise unknown_name("the block environment", name, ENVIRONMENT)
        self.check_idle()
        if "block_hashes" in fields:
            self.put_ancestors(hashes)
            block.ancestor_count = <uint32_t>len(hashes)
        self.context = block

    cdef int put_ancestors(self, list hashes) except -1:
        for i, item in enumerate(hashes):
            memcpy(self.ancestors[<size_t>i].b, PyBytes_AS_STRING(item), 32)
        return 0

    @property
    def block(self) -> object:
        """The block environment that code sees; ``set_block`` changes it."""
        return environment_class()(
            coinbase=self.context.coinbase.b[:20],
            number=self.context.number,
            timestamp=self.context.timestamp,
            gas_limit=self.context.gas_limit,
            chain_id=self.context.chain_id,
            difficulty=word_to_int(&self.context.difficulty),
            prev_randao=word_to_int(&self.context.prev_randao),
            base_fee=word_to_int(&self.context.base_fee),
            blob_base_fee=word_to_int(&self.context.blob_base_fee),
            slot_number=self.context.slot_number,
        )

    @property
    def block_hashes(self) -> tuple[bytes, ...]:
        """The hashes of the blocks before, the parent's first, as far as they were given."""
        return tuple([self.ancestors[i].b[:32] for i in range(self.context.ancestor_count)])

    @property
    def chain_id(self) -> int:
        """The chain id that CHAINID gives and signatures must name."""
        return self.context.chain_id

    # --- state ---

    def set_account(
        self,
        address: bytes | str,
        balance: object = 0,
        nonce: object = 0,
        code: bytes | str = b"",
        storage: Mapping[int, int] | None = None,
    ) -> None:
        """Put an account in place of whatever stood at the address, storage included."""
        self.change(address, {
            "balance": integer(balance, "balance"), "nonce": integer(nonce, "nonce"),
            "code": as_bytes(code), "storage": storage or {}, "reset": True,
        })

    def set_balance(self, address: bytes | str, balance: object) -> None:
        """Give an account this balance (wei); the rest of it stays."""
        self.change(address, {"balance": integer(balance, "balance")})

    def set_nonce(self, address: bytes | str, nonce: object) -> None:
        """Give an account this nonce; the rest of it stays."""
        self.change(address, {"nonce": integer(nonce, "nonce")})

    def set_code(self, address: bytes | str, code: bytes | str) -> None:
        """Give an account this code; the rest of it stays."""
        self.change(address, {"code": as_bytes(code)})

    def set_storage(self, address: bytes | str, slot: object, value: object) -> None:
        """Write one storage slot; the rest of the account stays."""
        self.change(address, {"storage": {integer(slot, "slot"): integer(value, "value")}})

    cdef int change(self, object address, dict fields) except -1:
        """Replace fields of an account."""
        cdef Address key
        parse_address(address, &key)
        self.state = self.layer.with_accounts({key.b[:20]: fields})
        return 0

    def balance(self, address: bytes | str) -> int:
        """Balance in wei; 0 for an account that does not exist."""
        cdef Address key
        parse_address(address, &key)
        return self.layer.balance(key.b[:20])

    def nonce(self, address: bytes | str) -> int:
        """Nonce; 0 for an account that does not exist."""
        cdef Address key
        parse_address(address, &key)
        return self.layer.nonce(key.b[:20])

    def code(self, address: bytes | str) -> bytes:
        """Code; empty where there is none."""
        cdef Address key
        parse_address(address, &key)
        return self.layer.code(key.b[:20])

    def storage(self, address: bytes | str, slot: object) -> int:
        """The value of a storage slot; 0 where nothing was stored."""
        cdef Address key
        parse_address(address, &key)
        return self.layer.storage(key.b[:20], integer(slot, "slot"))

    def snapshot(self) -> Snapshot:
        """Remember state and block, at no cost; ``revert`` and ``with`` go back to them."""
        self.check_idle()
        number = self.snapshot_count
        self.snapshot_count = number + 1
        self.layers.append(Remembered(number, self.layer, self.block, self.block_hashes))
        return Snapshot(number, self)

    def revert(self, snapshot: object) -> None:
        """Go back to the state and the block of a snapshot; it and all later ones are used up.

        ValueError if it is no more.
        """
        wanted = integer(snapshot, "a snapshot")
        numbers = self.snapshot_numbers
        if wanted not in numbers:
            raise ValueError(f"there is no snapshot {wanted}")
        at = numbers.index(wanted)
        found = self.layers[at]
        self.state = found.state
        self.restore_block(found.block, found.block_hashes)
        del self.layers[at:]

    cdef int restore_block(self, object block, object hashes) except -1:
        fields = {name: getattr(block, name) for name in ENVIRONMENT if name != "block_hashes"}
        self.set_block(block_hashes=hashes, **fields)
        return 0

    def __reduce__(self) -> object:
        self.check_idle()
        state = (
            self.schedule, self.layer, self.block, self.block_hashes, list(self.layers),
            self.snapshot_count, getattr(self, "__dict__", None), self.transient_storage,
        )
        return __newobj__, (type(self),), state

    def __setstate__(self, state: tuple[object, ...]) -> None:
        if len(state) != 8 or not isinstance(state[0], ForkSchedule):
            raise TypeError("this is no pickled EVM")
        schedule, layer, block, hashes, layers, count, attributes, transient = state
        self.state = layer
        self.restore_block(block, hashes)
        self.schedule = schedule
        self.layers, self.snapshot_count = list(layers), count
        self.transient_storage = transient
        if attributes:
            self.__dict__.update(attributes)

    def __repr__(self) -> str:
        cdef object count = self.layer.account_count
        accounts = "1 account" if count == 1 else f"{count} accounts"
        place = f"chain {self.context.chain_id}, block {self.context.number}"
        remote = "" if self.layer.remote_state is None else " here, above a remote state"
        return f"<{type(self).__name__} {self.schedule.name}, {place}, {accounts}{remote}>"

    @property
    def transient_storage(self) -> dict[tuple[bytes, int], int] | None:
        """What messages keep of transient storage: values by (address, slot). None: nothing."""
        return None if self.setup is None else dict(self.setup.transient)

    @transient_storage.setter
    def transient_storage(self, values: Mapping[tuple[bytes, int], int] | None) -> None:
        self.check_idle()
        self.setup = None if values is None else MessageSetup(values)

    # --- execution ---

    cdef int begin(self, int64_t gas) except -1:
        """Claim the machine for this thread and point the world at the state.

        ``end`` must follow whatever happens. The state stays: nothing replaces it meanwhile.
        """
        cdef Reader reader
        self.check_idle()
        self.running = True
        self.machine.cancel = NULL
        if gas > SHORT_RUN_GAS or self.time_limit is not None:
            begin_interruptible(self.machine, gas > LONG_RUN_GAS)
            if self.machine.cancel == NULL and self.time_limit is not None:
                self.machine.cancel = &self.pause
        self.pause_request = <int*>self.machine.cancel
        self.layer.attach(&reader)
        world_begin(self.world, &reader)
        world_follow(self.world, &self.schedule.c)
        self.machine.world = self.world
        self.machine.schedule = &self.schedule.c
        self.machine.block = &self.context
        self.machine.transaction = &self.transaction
        return 0

    cdef int end(self) except -1:
        self.pause_request = NULL
        self.running = False
        self.machine.cancel = NULL
        return 0

    def cancel(self) -> None:
        """Let the run under way end with its time limit's error; any thread may."""
        cdef int* request = self.pause_request
        atomic_store_int(&self.overdue, True)
        if request != NULL:
            atomic_store_int(request, PAUSE_REQUEST)

    def rearm(self) -> None:
        """Forget that the last run was to end."""
        atomic_store_int(&self.overdue, False)
        atomic_store_int(<int*>&self.pause, NO_REQUEST)

    cdef int serve(self) except -1:
        """After a pause: read a trace, run signal handlers, end a run that is overdue."""
        if self.read_trace is not None:
            self.read_trace()
        if self.machine.cancel == &self.pause:
            atomic_store_int(<int*>&self.pause, NO_REQUEST)
        else:
            serve_signals()
        if self.time_limit is not None and atomic_load_int(&self.overdue):
            raise import_module(DEADLINES).out_of_time(self.time_limit)
        return 0

    cdef object limited(self, object timeout, object run, tuple args, dict options):
        """``run(self, ...)``, which ends with SimulationError after ``timeout`` seconds."""
        seconds = float(timeout)
        self.check_idle()
        self.time_limit = seconds
        try:
            with import_module(DEADLINES).WATCHDOG.watch(self, seconds):
                return run(self, *args, **options)
        finally:
            self.time_limit = None

    cdef int warm(self, const Address* address) except -1:
        cdef Account* account = world_account(self.world, address)
        if account == NULL:
            raise MemoryError
        world_warm_account(self.world, account)
        return 0

    cdef ExecutionResult result_of(self, Status status):
        """A result with what every kind of execution has."""
        cdef ExecutionResult result = ExecutionResult.__new__(ExecutionResult)
        cdef Machine* m = self.machine
        if status == OUT_OF_MEMORY:
            raise MemoryError
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
        blob_hashes: object = (), timeout: object = None,
    ) -> ExecutionResult:
        """Run a message call and forget what it changed, or keep it with ``commit``.

        No intrinsic gas is charged, no fee is paid and no nonce moves. ``origin`` is what ORIGIN
        gives, else the sender; ``static`` forbids changes of state as STATICCALL does;
        ``blob_hashes``: what BLOBHASH gives, 32 bytes each. ``timeout``: seconds after which a
        SimulationError ends the run. ``gas_used`` is what the frame used before refunds,
        ``gas_refunded`` the refund counter at the end. A failing call is a result with ``success``
        False and an ``error``; exceptions mean arguments that cannot be run.
        """
        cdef Message message
        cdef TransactionContext terms
        cdef bytes payload = as_bytes(data)
        cdef bytes hashes = b"" if blob_hashes is NO_HASHES else hash_run(blob_hashes)
        if timeout is not None:
            return self.limited(timeout, EVM.call, (to, data), {
                "sender": sender, "value": value, "gas": gas, "gas_price": gas_price,
                "origin": origin, "static": static, "commit": commit, "blob_hashes": blob_hashes,
            })
        memset(&message, 0, sizeof(Message))
        message.is_static = static
        read_message(&message, to, payload, sender, value, gas)
        read_terms(&terms, &message.sender, origin, gas_price, hashes)
        if self.layer.remote_state is None:
            result = self.run(&message, &terms)
        else:
            result = self.run_settled(&message, &terms, payload)
        if commit is not False and commit and result.success:
            self.keep()
        return result

    cdef int keep(self) except -1:
        """End the transaction of the message run last, and keep what it changed."""
        cdef bint ok
        if self.setup is not None:
            self.setup.remember(self.world)
        with nogil:
            ok = world_end_transaction(self.world)
        if not ok:
            raise MemoryError
        self.layer = self.layer.commit(self.world)
        return 0

    cdef ExecutionResult run_settled(
        self, const Message* message, const TransactionContext* terms, bytes data
    ):
        """Run a message over a remote state until the run guesses nothing."""
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
        """Run a message in a transaction of its own that is never ended."""
        cdef Status status
        cdef ExecutionResult result
        self.begin(message.gas)
        try:
            self.transaction = terms[0]
            world_begin_transaction(self.world)
            self.warm(&message.sender)
            self.warm(&message.recipient)
            if self.schedule.c.warm_coinbase:
                self.warm(&self.context.coinbase)
            if self.setup is not None:
                self.setup.apply(self.world, message)
            with nogil:
                status = machine_start(self.machine, message)
                if status == RUNNING:
                    status = machine_run(self.machine)
            while status == SUSPENDED or status == TRACE_FULL:
                self.serve()
                with nogil:
                    status = machine_run(self.machine)
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
        gas_price: object = 0, nonce: object = None, timeout: object = None, **fields: object,
    ) -> ExecutionResult:
        """Run a whole transaction (``to`` None creates a contract) and keep what it changed.

        Validity rules, intrinsic gas, fees, refunds and the nonce are those of the fork; the sender
        needs no signature. Without ``gas`` the transaction gets the most that block and fork allow.
        ``fields`` are further fields of ``Transaction.build``, such as ``max_fee_per_gas``,
        ``access_list`` or ``authorization_list``. Raises InvalidTransaction, with the state as it
        was, for a transaction that no block could hold, and SimulationError after ``timeout``
        seconds.
        """
        cdef Address from_, to_
        if timeout is not None:
            return self.limited(timeout, EVM.transact, (to, data), {
                "sender": sender, "value": value, "gas": gas, "gas_price": gas_price,
                "nonce": nonce, **fields,
            })
        parse_address(sender, &from_)
        if to is not None:
            parse_address(to, &to_)
        address = from_.b[:20]
        amount = integer(value, "value")
        if "max_fee_per_gas" not in fields:
            fields["gas_price"] = integer(gas_price, "gas_price")
        if gas is None:
            gas = self.most_gas()
        if self.layer.remote_state is not None:
            self.ask_ahead(address, None if to is None else to_.b[:20], as_bytes(data), amount)
        if nonce is None:
            nonce = self.layer.nonce(address)
        transaction = Transaction.build(
            sender=address, to=None if to is None else to_.b[:20], data=as_bytes(data),
            value=amount, gas_limit=integer(gas, "gas"), nonce=integer(nonce, "nonce"), **fields,
        )
        return self.execute(transaction)

    def most_gas(self) -> int:
        """The highest gas limit of a transaction: the block's or the fork's, the lower one."""
        cdef uint64_t cap = <uint64_t>self.schedule.c.tx_gas_cap
        return min(self.context.gas_limit, cap) if cap else self.context.gas_limit

    def execute(self, transaction: Transaction) -> ExecutionResult:
        """Run a transaction, signed or built, and keep what it changed; see ``transact``."""
        cdef Transaction source = transaction
        cdef RemoteState remote = self.layer.remote_state
        cdef uint64_t before
        recover_senders([source], threads=1)
        while True:
            before = misses_of_thread()
            try:
                return self.run_transaction(source, before)
            except Exception:
                if misses_of_thread() == before:
                    raise
            remote.fetch_missing()

    cdef ExecutionResult run_transaction(self, Transaction source, uint64_t misses):
        """Run it and keep what it changed; FastevmError if the thread has more ``misses`` then."""
        cdef TxResult outcome
        cdef TxRun run
        cdef TxError error
        self.begin(HIGHEST_GAS if source.c.gas_limit >> 63 else <int64_t>source.c.gas_limit)
        try:
            with nogil:
                error = transact_begin(
                    self.machine, &source.c, NULL, self.context.gas_limit, &run, &outcome
                )
                if error == TX_VALID:
                    error = transact_run(self.machine, &run, &outcome)
            while error == TX_PAUSED:
                self.serve_or_abandon(&run)
                with nogil:
                    error = transact_run(self.machine, &run, &outcome)
            if error != TX_VALID:
                raise refusal(error, &source.c, &outcome)
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
        """Fetch what every transaction reads, and what the endpoint says that this one does."""
        cdef RemoteState remote = self.layer.remote_state
        accounts = {sender, self.context.coinbase.b[:20]}
        if to is not None:
            accounts.add(to)
        remote.fetch(Wanted(accounts, calls=[call_object(sender, to, data, value)]))
        return 0

    cdef int serve_or_abandon(self, TxRun* run) except -1:
        """Run Python's signal handlers; if one raises, the transaction has changed nothing."""
        try:
            self.serve()
        except BaseException:
            transact_abandon(self.machine, run)
            raise
        return 0

    def create(self, initcode: bytes | str, **terms: object) -> ExecutionResult:
        """Run init code as a message, as ``call`` runs code. See the stub."""
        return import_module(CREATION).create(self, initcode, **terms)

    def deploy(self, initcode: bytes | str, **fields: object) -> ExecutionResult:
        """Run a creation transaction; ``created_address`` says where. See ``transact``."""
        return self.transact(None, initcode, **fields)
