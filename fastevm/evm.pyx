"""``EVM``: an in-memory Ethereum machine to call from Python."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.execution.refusals cimport refusal
from fastevm.execution.transact cimport (
    TxRun, transact_abandon, transact_begin, transact_run,
)
from fastevm.execution.transaction cimport Transaction
from fastevm.execution.transaction_result cimport TX_PAUSED, TX_VALID, TxError, TxResult
from fastevm.interpreter.interrupts cimport begin_interruptible, serve_signals
from fastevm.interpreter.machine cimport (
    CALL_MESSAGE,
    Message,
    machine_free,
    machine_new,
    machine_run,
    machine_start,
    status_text,
)
from fastevm.interpreter.status cimport (
    OUT_OF_MEMORY, REVERTED, RUNNING, STOPPED, SUSPENDED, Status,
)
from fastevm.execution.packed_logs cimport pack_logs, unpack_logs
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.wire.text.hex cimport hex_decode
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
    world_free,
    world_new,
    world_warm_account,
)

from collections.abc import Mapping
from importlib import import_module

from fastevm.errors import FastevmError
from fastevm.execution.senders import recover_senders
from fastevm.simulate.engine.revert import revert_message
from fastevm.spec.schedule import schedule_for
from fastevm.state.source import Wanted, call_object
from fastevm.types import Log


ANCESTOR_LIMIT = 256
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


cdef int64_t HIGHEST_GAS = 0x7fffffffffffffff
cdef object FREE = 0              # the usual gas price: ints this small are one object each
cdef Layer EMPTY = Layer.empty()
cdef ForkSchedule DEFAULT_SCHEDULE = schedule_for("osaka")


cdef int parse_address(object value, Address* out) except -1:
    """20 bytes, or 40 hex digits with 0x before them; ValueError or TypeError otherwise."""
    cdef bytes text
    if PyBytes_CheckExact(value):
        if PyBytes_GET_SIZE(value) != 20:
            raise ValueError(f"an address has 20 bytes, not {len(value)}")
        memcpy(out.b, PyBytes_AS_STRING(value), 20)
        return 0
    if isinstance(value, str):
        text = (<str>value).encode("ascii", "replace")
        if (
            PyBytes_GET_SIZE(text) != 42 or text[:2] not in (b"0x", b"0X")
            or not hex_decode(out.b, PyBytes_AS_STRING(text) + 2, 40)
        ):
            raise ValueError(f"not an address: {value!r}")
        return 0
    if isinstance(value, bytearray | memoryview):
        return parse_address(bytes(value), out)
    raise TypeError(f"an address is 20 bytes or a 0x-prefixed string, not {type(value).__name__}")


cdef bytes as_bytes(object value):
    """Bytes as they are, or of a 0x-prefixed string."""
    if PyBytes_CheckExact(value):
        return <bytes>value
    if isinstance(value, str):
        if value[:2] not in ("0x", "0X"):
            raise ValueError(f"hex data must begin with 0x: {value[:20]!r}")
        return bytes.fromhex(value[2:])
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"data is bytes or a 0x-prefixed string, not {type(value).__name__}")


cdef list ancestor_hashes(object hashes):
    """A list of its own, of at most 256 hashes of 32 bytes; ValueError otherwise."""
    cdef list found = list(hashes)
    if len(found) > ANCESTOR_LIMIT or any(
        not PyBytes_CheckExact(item) or len(item) != 32 for item in found
    ):
        raise ValueError("block_hashes are at most 256 hashes of 32 bytes")
    return found


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
        output = (self.output or b"").hex()
        return f"ExecutionResult({outcome}, gas_used={self.gas_used}, output=0x{output})"

    def __reduce__(self) -> object:
        return restore_result, (
            self.success, self.output, self.gas_used, self.gas_refunded, self.logs, self.error,
            self.created_address,
        )


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


class Snapshot(int):
    """The number of a snapshot, and a context manager that goes back to it at the end."""

    evm: EVM

    def __new__(cls, number: int, evm: EVM) -> Snapshot:
        snapshot = super().__new__(cls, number)
        snapshot.evm = evm
        return snapshot

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *exception: object) -> None:
        if self < len(self.evm.snapshots):  # not yet gone back to by hand
            self.evm.revert(self)


cdef class EVM:
    """An Ethereum machine over a state in memory.

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
        self.block.ancestors = self.ancestors
        self.layer = EMPTY
        self.schedule = DEFAULT_SCHEDULE
        self.layers = []

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
        """``fork`` by name or as a schedule; ``environment`` as for ``set_block``.

        Raises UnknownForkError with a suggestion, TypeError for an unknown part of the environment.
        """
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
        return tuple(self.layers)

    def set_block(self, **fields: object) -> None:
        """Change parts of the block environment; what is not named stays.

        ``number``, ``timestamp`` (seconds), ``gas_limit``, ``chain_id``: below 2**64. ``coinbase``:
        an address. ``base_fee``, ``blob_base_fee`` (wei), ``difficulty``, ``prev_randao``: below
        2**256. ``block_hashes``: up to 256 hashes of the blocks before, the parent's first.
        TypeError for another name; nothing has changed after an error.
        """
        cdef BlockContext block = self.block
        cdef list hashes = ancestor_hashes(fields.get("block_hashes", ()))
        for name, value in fields.items():
            if name == "number":
                block.number = value
            elif name == "timestamp":
                block.timestamp = value
            elif name == "gas_limit":
                block.gas_limit = value
            elif name == "chain_id":
                block.chain_id = value
            elif name == "coinbase":
                parse_address(value, &block.coinbase)
            elif name == "base_fee":
                word_from_int(&block.base_fee, value)
            elif name == "blob_base_fee":
                word_from_int(&block.blob_base_fee, value)
            elif name == "difficulty":
                word_from_int(&block.difficulty, value)
            elif name == "prev_randao":
                word_from_int(&block.prev_randao, value)
            elif name != "block_hashes":
                raise TypeError(f"the block environment has no {name!r}")
        self.check_idle()
        if "block_hashes" in fields:
            self.put_ancestors(hashes)
            block.ancestor_count = <uint32_t>len(hashes)
        self.block = block

    cdef int put_ancestors(self, list hashes) except -1:
        for i, item in enumerate(hashes):
            memcpy(self.ancestors[<size_t>i].b, PyBytes_AS_STRING(item), 32)
        return 0

    @property
    def chain_id(self) -> int:
        """The chain id that CHAINID gives and signatures must name."""
        return self.block.chain_id

    # --- state ---

    def set_account(
        self,
        address: bytes | str,
        balance: int = 0,
        nonce: int = 0,
        code: bytes | str = b"",
        storage: Mapping[int, int] | None = None,
    ) -> None:
        """Put an account in place of whatever stood at the address, storage included."""
        cdef Address key
        parse_address(address, &key)
        fields = {"balance": balance, "nonce": nonce, "code": as_bytes(code),
                  "storage": storage or {}, "reset": True}
        self.state = self.layer.with_accounts({key.b[:20]: fields})

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

    def storage(self, address: bytes | str, slot: int) -> int:
        """The value of a storage slot; 0 where nothing was stored."""
        cdef Address key
        parse_address(address, &key)
        return self.layer.storage(key.b[:20], slot)

    def snapshot(self) -> Snapshot:
        """Remember the state, at no cost; ``revert`` goes back to it, and so does ``with``."""
        self.check_idle()
        self.layers.append(self.layer)
        return Snapshot(len(self.layers) - 1, self)

    def revert(self, snapshot: int) -> None:
        """Go back to a snapshot; it and all later ones are used up. ValueError if it is no more."""
        cdef Py_ssize_t at = snapshot
        if not 0 <= at < len(self.layers):
            raise ValueError(f"there is no snapshot {at}")
        self.state = self.layers[at]
        del self.layers[at:]

    # --- execution ---

    cdef int begin(self, int64_t gas) except -1:
        """Claim the machine for this thread and point the world at the state.

        ``end`` must follow whatever happens. The state stays: nothing replaces it meanwhile.
        """
        cdef Reader reader
        self.check_idle()
        self.running = True
        self.machine.cancel = NULL
        if gas > SHORT_RUN_GAS:
            begin_interruptible(self.machine)
        self.layer.attach(&reader)
        world_begin(self.world, &reader)
        self.world.clears_empty_accounts = self.schedule.c.clears_empty_accounts
        self.machine.world = self.world
        self.machine.schedule = &self.schedule.c
        self.machine.block = &self.block
        self.machine.transaction = &self.transaction
        return 0

    cdef int end(self) except -1:
        self.running = False
        self.machine.cancel = NULL
        return 0

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
        self,
        to: bytes | str,
        data: bytes | str = b"",
        *,
        sender: bytes | str = ZERO_ADDRESS,
        value: int = 0,
        gas: int = 30_000_000,
        gas_price: int = 0,
    ) -> ExecutionResult:
        """Run a message call and forget what it changed.

        No intrinsic gas is charged, no fee is paid and no nonce moves. ``gas_used`` is what the
        frame used before refunds, ``gas_refunded`` the refund counter at the end. A failing call is
        a result with ``success`` False and an ``error``; exceptions mean arguments that cannot be
        run.
        """
        cdef Message message
        cdef bytes payload = as_bytes(data)
        memset(&message, 0, sizeof(Message))
        message.kind = CALL_MESSAGE
        parse_address(to, &message.recipient)
        parse_address(sender, &message.sender)
        if value:
            word_from_int(&message.value, value)
        message.data = <const uint8_t*>PyBytes_AS_STRING(payload)
        message.size = PyBytes_GET_SIZE(payload)
        message.gas = gas
        if message.gas < 0:
            raise ValueError(f"gas cannot be negative: {gas}")
        if self.layer.remote_state is None:
            return self.run(&message, gas_price)
        return self.run_settled(&message, gas_price, payload)

    cdef ExecutionResult run_settled(
        self, const Message* message, object gas_price, bytes data
    ):
        """Run a message over a remote state until the run guesses nothing."""
        cdef RemoteState remote = self.layer.remote_state
        cdef uint64_t before
        cdef bint is_first = True
        while True:
            before = misses_of_thread()
            try:
                result = self.run(message, gas_price)
            except Exception:
                if misses_of_thread() == before:
                    raise
            else:
                if misses_of_thread() == before:
                    return result
            remote.fetch_missing((call_object(
                message.sender.b[:20], message.recipient.b[:20], data, word_to_int(&message.value)
            ),) if is_first else ())
            is_first = False

    cdef ExecutionResult run(self, const Message* message, object gas_price):
        """Run a message in a transaction of its own that is never ended."""
        cdef Status status
        cdef ExecutionResult result
        self.begin(message.gas)
        try:
            if gas_price is FREE:
                word_zero(&self.transaction.gas_price)
            else:
                word_from_int(&self.transaction.gas_price, gas_price)
            self.transaction.origin = message.sender
            world_begin_transaction(self.world)
            self.warm(&message.sender)
            self.warm(&message.recipient)
            if self.schedule.c.warm_coinbase:
                self.warm(&self.block.coinbase)
            with nogil:
                status = machine_start(self.machine, message)
                if status == RUNNING:
                    status = machine_run(self.machine)
            while status == SUSPENDED:
                serve_signals()
                with nogil:
                    status = machine_run(self.machine)
            result = self.result_of(status)
            result.gas_used = message.gas - self.machine.gas_left
            result.gas_refunded = self.world.refund
            return result
        finally:
            self.end()

    def transact(
        self,
        to: bytes | str | None = None,
        data: bytes | str = b"",
        *,
        sender: bytes | str = ZERO_ADDRESS,
        value: int = 0,
        gas: int | None = None,
        gas_price: int = 0,
        nonce: int | None = None,
        **fields: object,
    ) -> ExecutionResult:
        """Run a whole transaction (``to`` None creates a contract) and keep what it changed.

        Validity rules, intrinsic gas, fees, refunds and the nonce are those of the fork; the sender
        needs no signature. Without ``gas`` the transaction gets the most that block and fork allow.
        ``fields`` are further fields of ``Transaction.build``, such as ``max_fee_per_gas``,
        ``access_list`` or ``authorization_list``. Raises InvalidTransaction, with the state as it
        was, for a transaction that no block could hold.
        """
        cdef Address from_, to_
        parse_address(sender, &from_)
        if to is not None:
            parse_address(to, &to_)
        address = from_.b[:20]
        prices = {} if "max_fee_per_gas" in fields else {"gas_price": gas_price}
        if gas is None:
            gas = self.most_gas()
        if self.layer.remote_state is not None:
            self.ask_ahead(address, None if to is None else to_.b[:20], as_bytes(data), value)
        if nonce is None:
            nonce = self.layer.nonce(address)
        transaction = Transaction.build(
            sender=address, to=None if to is None else to_.b[:20], data=as_bytes(data), value=value,
            gas_limit=gas, nonce=nonce, **prices, **fields,
        )
        return self.execute(transaction)

    def most_gas(self) -> int:
        """The highest gas limit of a transaction: the block's or the fork's, the lower one."""
        cdef uint64_t cap = <uint64_t>self.schedule.c.tx_gas_cap
        return min(self.block.gas_limit, cap) if cap else self.block.gas_limit

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
                    self.machine, &source.c, NULL, self.block.gas_limit, &run, &outcome
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
        accounts = {sender, self.block.coinbase.b[:20]}
        if to is not None:
            accounts.add(to)
        remote.fetch(Wanted(accounts, calls=[call_object(sender, to, data, value)]))
        return 0

    cdef int serve_or_abandon(self, TxRun* run) except -1:
        """Run Python's signal handlers; if one raises, the transaction has changed nothing."""
        try:
            serve_signals()
        except BaseException:
            transact_abandon(self.machine, run)
            raise
        return 0

    def deploy(self, initcode: bytes | str, **fields: object) -> ExecutionResult:
        """Run a creation transaction; ``created_address`` says where the contract is. See
        ``transact``."""
        return self.transact(None, initcode, **fields)
