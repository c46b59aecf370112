"""``BareMachine``: executes messages without a transaction, with every option of the machine."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from collections.abc import Mapping
from dataclasses import dataclass
from time import thread_time_ns
from typing import Any

from fastevm.core.primitives.cancellation cimport CANCEL_REQUEST, NO_REQUEST, PAUSE_REQUEST
from fastevm.core.interpreter.machine cimport (
    CALL_MESSAGE,
    CREATE_MESSAGE,
    BlockContext,
    Machine,
    Message,
    PrecompileMove,
    TransactionContext,
    machine_free,
    machine_new,
    machine_run,
    machine_start,
    status_text,
)
from fastevm.core.interpreter.status cimport (
    NEEDS_STATE, RUNNING, SUSPENDED, TRACE_FULL, Status,
)
from fastevm.core.interpreter.tracer cimport StepTrace
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word, word_from_int, word_to_int
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.code cimport Code, code_new
from fastevm.core.state.reader cimport READ_ABSENT, READ_MISSING, AccountData, Reader, ReadStatus
from fastevm.core.state.records cimport (
    WORLD_NEEDS_ACCOUNT,
    WORLD_NEEDS_SLOT,
    Checkpoint,
    LogRecord,
    World,
)
from fastevm.core.state.world cimport (
    Account,
    world_account,
    world_begin,
    world_begin_transaction,
    world_follow,
    world_checkpoint,
    world_end_transaction,
    world_free,
    world_new,
    world_provide_account,
    world_provide_slot,
    world_put_account,
    world_put_slot,
    world_rollback,
    world_slot,
    world_warm_account,
)

from fastevm.core.spec.schedule import schedule_for


SENDER = bytes(18) + b"\xca\x11"
PRECOMPILES = [number.to_bytes(20, "big") for number in (*range(1, 0x12), 0x100)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a message.

    ``status``: as in status.pxd. ``requests``: how often the message was resumed.
    """

    status: int
    error: str
    gas_left: int
    output: bytes
    refund: int
    logs: tuple[tuple[bytes, tuple[int, ...], bytes], ...]
    requests: int
    nanoseconds: int


cdef ReadStatus absent_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    return READ_ABSENT if base == NULL else READ_MISSING


cdef ReadStatus absent_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    return READ_ABSENT if base == NULL else READ_MISSING


cdef ReadStatus absent_hash(const void* base, uint64_t number, Hash* out) noexcept nogil:
    return READ_ABSENT


cdef Address address_of(bytes value) except *:
    cdef Address address
    if len(value) != 20:
        raise ValueError("an address has 20 bytes")
    memcpy(address.b, PyBytes_AS_STRING(value), 20)
    return address


cdef Code* code_of(bytes value) except? NULL:
    return code_new(<const uint8_t*>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value), NULL, False)


cdef class BareMachine:
    """A world with some accounts and a machine. Changes are kept by default.

    - ``accounts``: address -> {balance, nonce, code, storage}
    - ``remote``: nothing is known at first; every read suspends the machine and gets its value from
      ``accounts``
    - ``suspend``: the machine stops before every hosted op
    - ``pause``: requests a pause at the start and after every second stop; the machine pauses at
      the next back-edge, call or return
    - ``moves``: address -> number of the precompile at this address, 0 = none
    """

    cdef World* world
    cdef Machine* machine
    cdef BlockContext block
    cdef TransactionContext transaction
    cdef ForkSchedule schedule
    cdef dict accounts
    cdef int cancel           # a CancelRequest
    cdef bint pauses
    cdef PrecompileMove move
    cdef Hash ancestors[256]
    cdef Hash blob_hashes[16]

    def __cinit__(self):
        self.world = world_new()
        self.machine = machine_new()
        if self.world == NULL or self.machine == NULL:
            raise MemoryError

    def __dealloc__(self):
        machine_free(self.machine)
        world_free(self.world)

    def __init__(
        self, fork: str, accounts: Mapping[bytes, Mapping[str, Any]] | None = None, *,
        bint remote=False, bint suspend=False, bint pause=False,
        moves: Mapping[bytes, int] | None = None, **block: Any,
    ):
        cdef Reader reader
        memset(&reader, 0, sizeof(reader))
        self.schedule = schedule_for(fork)
        self.accounts = dict(accounts or {})
        reader.base = <const void*>self.world if remote else NULL
        reader.code = NULL
        reader.account = absent_account
        reader.slot = absent_slot
        reader.block_hash = absent_hash
        world_begin(self.world, &reader)
        world_follow(self.world, &self.schedule.c)
        self.machine.world = self.world
        self.machine.schedule = &self.schedule.c
        self.machine.block = &self.block
        self.machine.transaction = &self.transaction
        self.machine.suspend_always = suspend
        self.machine.cancel = <const bint*>&self.cancel
        self.pauses = pause
        for address, number in (moves or {}).items():
            self.move.address = address_of(address)
            self.move.precompile = number
            self.machine.precompile_moves = &self.move
            self.machine.precompile_move_count = 1
        self.set_block(**block)
        if not remote:
            for address, fields in self.accounts.items():
                self.put(address, fields)

    def set_block(
        self, number=1, timestamp=1, gas_limit=30_000_000, chain_id=1,
        bytes coinbase=bytes(20), difficulty=0, prev_randao=0, base_fee=0, blob_base_fee=1,
        gas_price=0, bytes origin=SENDER, ancestors=(), blob_hashes=(),
    ) -> None:
        """Sets the block and transaction environment; defaults are in the signature."""
        cdef BlockContext* block = &self.block
        block.number = number
        block.timestamp = timestamp
        block.gas_limit = gas_limit
        block.chain_id = chain_id
        block.coinbase = address_of(coinbase)
        word_from_int(&block.difficulty, difficulty)
        word_from_int(&block.prev_randao, prev_randao)
        word_from_int(&block.base_fee, base_fee)
        word_from_int(&block.blob_base_fee, blob_base_fee)
        word_from_int(&self.transaction.gas_price, gas_price)
        self.transaction.origin = address_of(origin)
        for i, value in enumerate(ancestors):
            memcpy(self.ancestors[<size_t>i].b, PyBytes_AS_STRING(value), 32)
        block.ancestors = self.ancestors
        block.ancestor_count = len(ancestors)
        for i, value in enumerate(blob_hashes):
            memcpy(self.blob_hashes[<size_t>i].b, PyBytes_AS_STRING(value), 32)
        self.transaction.blob_hashes = self.blob_hashes
        self.transaction.blob_hash_count = len(blob_hashes)

    cdef int put(self, bytes address, fields) except -1:
        cdef Address key = address_of(address)
        cdef Account* a = world_account(self.world, &key)
        cdef Word balance, slot, value
        word_from_int(&balance, fields.get("balance", 0))
        world_put_account(
            self.world, a, &balance, fields.get("nonce", 0), code_of(fields.get("code", b""))
        )
        for k, v in fields.get("storage", {}).items():
            word_from_int(&slot, k)
            word_from_int(&value, v)
            world_put_slot(self.world, a, &slot, &value)
        return 0

    cdef int answer(self) except -1:
        """Provides the value that the world requested, from ``accounts``."""
        cdef Word balance, value
        cdef bytes address = self.world.need_address.b[:20]
        fields = self.accounts.get(address)
        if self.world.need == WORLD_NEEDS_SLOT:
            key = word_to_int(&self.world.need_key)
            word_from_int(&value, fields.get("storage", {}).get(key, 0))
            world_provide_slot(
                self.world, &self.world.need_address, &self.world.need_key, &value
            )
        elif self.world.need == WORLD_NEEDS_ACCOUNT and fields is None:
            word_from_int(&balance, 0)
            world_provide_account(
                self.world, &self.world.need_address, &balance, 0, NULL, False, False
            )
        elif self.world.need == WORLD_NEEDS_ACCOUNT:
            word_from_int(&balance, fields.get("balance", 0))
            world_provide_account(
                self.world, &self.world.need_address, &balance, fields.get("nonce", 0),
                code_of(fields.get("code", b"")), True, bool(fields.get("storage")),
            )
        else:
            raise MemoryError
        return 0

    cdef Account* find(self, bytes address) except NULL:
        cdef Address key = address_of(address)
        cdef Account* a = world_account(self.world, &key)
        while a == NULL:
            self.answer()
            a = world_account(self.world, &key)
        return a

    cdef object outcome(self, Status status, int requests, int64_t elapsed):
        cdef Machine* m = self.machine
        cdef LogRecord* log
        logs = []
        for i in range(self.world.log_count):
            log = &self.world.logs[<size_t>i]
            topics = tuple(word_to_int(&log.topics[<size_t>t]) for t in range(log.topic_count))
            logs.append((log.address.b[:20], topics, log.data[:log.size]))
        return Outcome(
            status=status, error=status_text(status).decode(), gas_left=m.gas_left,
            output=m.output.bytes[:m.output.size] if m.output.size else b"",
            refund=self.world.refund, logs=tuple(logs), requests=requests, nanoseconds=elapsed,
        )

    cdef object run(self, Message* message, StepTrace trace, list records, bint keep):
        cdef Status status
        cdef Checkpoint before
        cdef int requests = 0
        memset(&before, 0, sizeof(before))
        self.machine.tracer = trace.c if trace is not None else NULL
        world_begin_transaction(self.world)
        self.world.log_count = 0
        for address in (*PRECOMPILES, message.sender.b[:20], message.recipient.b[:20]):
            world_warm_account(self.world, self.find(address))
        world_checkpoint(self.world, &before)
        if self.pauses:
            self.cancel = PAUSE_REQUEST
        start = thread_time_ns()
        with nogil:
            status = machine_start(self.machine, message)
        while status == NEEDS_STATE:
            requests += 1
            self.answer()
            status = machine_start(self.machine, message)
        if status == RUNNING:
            with nogil:
                status = machine_run(self.machine)
        while status == NEEDS_STATE or status == SUSPENDED or status == TRACE_FULL:
            requests += 1
            if status == NEEDS_STATE:
                self.answer()
            elif status == SUSPENDED and self.pauses:
                self.cancel = NO_REQUEST if self.cancel == PAUSE_REQUEST else PAUSE_REQUEST
            elif status == TRACE_FULL:
                records += trace.drain()
            with nogil:
                status = machine_run(self.machine)
        outcome = self.outcome(status, requests, thread_time_ns() - start)
        if keep:
            world_end_transaction(self.world)
        else:
            world_rollback(self.world, &before)
        if trace is not None:
            records += trace.drain()
        return outcome

    def call(
        self, bytes to, bytes data=b"", *, bytes sender=SENDER, value: int = 0,
        int64_t gas=10_000_000, bint static=False, bint no_transfer=False,
        StepTrace trace=None, list records=None, bint keep=True,
    ) -> Outcome:
        """Runs a message in a separate transaction. Appends trace records to ``records``."""
        cdef Message message
        memset(&message, 0, sizeof(Message))
        message.kind = CALL_MESSAGE
        message.sender = address_of(sender)
        message.recipient = address_of(to)
        word_from_int(&message.value, value)
        message.data = <const uint8_t*>PyBytes_AS_STRING(data)
        message.size = PyBytes_GET_SIZE(data)
        message.gas = gas
        message.is_static = static
        message.no_transfer = no_transfer
        return self.run(&message, trace, records if records is not None else [], keep)

    def create(
        self, bytes address, bytes initcode, *, bytes sender=SENDER, value: int = 0,
        int64_t gas=10_000_000, bint keep=True,
    ) -> Outcome:
        """Runs init code for a contract at the address."""
        cdef Message message
        memset(&message, 0, sizeof(Message))
        message.kind = CREATE_MESSAGE
        message.sender = address_of(sender)
        message.recipient = address_of(address)
        word_from_int(&message.value, value)
        message.data = <const uint8_t*>PyBytes_AS_STRING(initcode)
        message.size = PyBytes_GET_SIZE(initcode)
        message.gas = gas
        return self.run(&message, None, [], keep)

    def cancel_now(self, bint on=True) -> None:
        """Sets or clears the flag that the machine reads at back-edges and calls."""
        self.cancel = CANCEL_REQUEST if on else NO_REQUEST

    def account(self, bytes address) -> dict[str, Any] | None:
        """Returns the current balance, nonce and code; None if the account does not exist."""
        cdef Account* a = self.find(address)
        if not a.exists:
            return None
        code = a.code.bytes[:a.code.size] if a.code != NULL else b""
        return {"balance": word_to_int(&a.balance), "nonce": a.nonce, "code": code}

    def storage(self, bytes address, key: int) -> int:
        """Returns the current value of a slot."""
        cdef Account* a = self.find(address)
        cdef Word slot
        word_from_int(&slot, key)
        if world_slot(self.world, a, &slot) == NULL:
            self.answer()
        return word_to_int(&world_slot(self.world, a, &slot).current)

    def storage_items(self, bytes address) -> dict[int, int]:
        """Returns all loaded nonzero slots of an account."""
        cdef Address key = address_of(address)
        cdef Account* a = world_account(self.world, &key)
        cdef dict found = {}
        cdef size_t i
        if a != NULL and a.slot_mask != 0:
            for i in range(<size_t>a.slot_mask + 1):
                if a.slots[i] != NULL:
                    found[word_to_int(&a.slots[i].key)] = word_to_int(&a.slots[i].current)
        return {slot: value for slot, value in found.items() if value}

    def halt(self) -> tuple[int, int, int]:
        """Returns opcode, stack height and pc of the last halt."""
        return self.machine.halt_opcode, self.machine.halt_height, self.machine.halt_pc
