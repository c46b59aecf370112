"""Stateful precompiles: Python callables that read and write the state inside the run's journal."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.primitives.bytes_like cimport bytes_like, parse_address, sized_bytes, slot_number
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, uint64_from_named, word_from_named, word_load, word_to_int,
)
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.code cimport Code, code_new
from fastevm.core.state.world cimport world_account, world_slot
from fastevm.core.state.writes cimport (
    world_log, world_set_balance, world_set_code, world_set_nonce, world_set_slot, world_touch,
)

from fastevm.errors import PrecompileFailed, StateNotKnown


TOPICS_LIMIT = 4  # of a log


cdef class PrecompileCall:
    """What a stateful precompile knows of its call. See the stub."""

    def __init__(self) -> None:
        raise TypeError("a PrecompileCall comes from the machine")

    cdef int check_running(self) except -1:
        if self.machine == NULL:
            raise RuntimeError("the call has ended: a PrecompileCall is valid inside its callable")
        return 0

    cdef int check_writable(self) except -1:
        self.check_running()
        if self.frame.is_static:
            raise PrecompileFailed("write protection: the call is static")
        return 0

    cdef Account* account(self, object address) except NULL:
        cdef Address key
        cdef Account* found
        memset(&key, 0, sizeof(key))
        self.check_running()
        parse_address(address, &key, "address")
        found = world_account(self.machine.world, &key)
        if found == NULL:
            raise MemoryError
        return found

    @property
    def caller(self) -> bytes:
        """The account that calls."""
        self.check_running()
        return self.frame.caller.b[:20]

    @property
    def origin(self) -> bytes:
        """The sender of the transaction."""
        self.check_running()
        return self.machine.transaction.origin.b[:20]

    @property
    def value(self) -> int:
        """The value of the call in wei."""
        self.check_running()
        return word_to_int(&self.frame.value)

    @property
    def gas(self) -> int:
        """The gas that the call may use."""
        self.check_running()
        return self.frame.gas

    @property
    def is_static(self) -> bool:
        """Whether state must not change."""
        self.check_running()
        return self.frame.is_static

    @property
    def depth(self) -> int:
        """The depth of the call; 1 for the message itself."""
        self.check_running()
        return self.machine.depth

    def balance(self, address: object) -> int:
        """Returns the balance of an account in wei."""
        return word_to_int(&self.account(address).balance)

    def nonce(self, address: object) -> int:
        """Returns the nonce of an account."""
        return self.account(address).nonce

    def code(self, address: object) -> bytes:
        """Returns the code of an account."""
        cdef const Code* code = self.account(address).code
        if code != NULL and code.is_unknown:
            raise StateNotKnown(f"the code with the hash 0x{code.hash.b[:32].hex()} is not known")
        return b"" if code == NULL else code.bytes[:code.size]

    def storage(self, address: object, slot: object) -> int:
        """Returns the value of a slot."""
        cdef Account* account = self.account(address)
        cdef Word key
        cdef Slot* found
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        found = world_slot(self.machine.world, account, &key)
        if found == NULL:
            raise MemoryError
        return word_to_int(&found.current)

    def set_balance(self, address: object, balance: int) -> None:
        """Sets the balance of an account in wei."""
        cdef Account* account = self.account(address)
        cdef Word amount
        word_from_named(&amount, balance, "balance")
        self.check_writable()
        if not (
            world_touch(self.machine.world, account)
            and world_set_balance(self.machine.world, account, &amount)
        ):
            raise MemoryError

    def set_nonce(self, address: object, nonce: int) -> None:
        """Sets the nonce of an account."""
        cdef Account* account = self.account(address)
        number = uint64_from_named(nonce, "nonce")
        self.check_writable()
        if not world_set_nonce(self.machine.world, account, number):
            raise MemoryError

    def set_code(self, address: object, code: object) -> None:
        """Sets the code of an account. Frames that execute its old code continue with it."""
        cdef Account* account = self.account(address)
        cdef bytes raw = bytes_like(code, "code")
        cdef Code* made
        self.check_writable()
        made = code_new(
            <const uint8_t*>PyBytes_AS_STRING(raw), <size_t>PyBytes_GET_SIZE(raw), NULL, False
        )
        if made == NULL or not world_set_code(self.machine.world, account, made):
            raise MemoryError

    def set_storage(self, address: object, slot: object, value: object) -> None:
        """Sets a slot to an int or 32 bytes."""
        cdef Account* account = self.account(address)
        cdef Word key, amount
        cdef Slot* found
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        word_from_named(&amount, slot_number(value, "value"), "value")
        self.check_writable()
        found = world_slot(self.machine.world, account, &key)
        if found == NULL or not world_set_slot(self.machine.world, account, found, &amount):
            raise MemoryError

    def log(self, address: object, topics: object, data: object = b"") -> None:
        """Adds a log of an account with at most four topics of 32 bytes."""
        cdef Account* account = self.account(address)
        cdef Word[4] words
        cdef bytes payload = bytes_like(data, "data")
        cdef list given = [sized_bytes(topic, 32, "topic") for topic in topics]
        cdef int count = len(given), i
        if count > TOPICS_LIMIT:
            raise ValueError(f"topics: expected at most {TOPICS_LIMIT}, found {count}")
        for i in range(count):
            word_load(&words[i], <const uint8_t*>PyBytes_AS_STRING(given[i]))
        self.check_writable()
        if not world_log(
            self.machine.world, &account.address, words, <uint32_t>count,
            <const uint8_t*>PyBytes_AS_STRING(payload), <size_t>PyBytes_GET_SIZE(payload),
        ):
            raise MemoryError


cdef PrecompileCall begin_call(Machine* m, const Frame* frame, bytes data):
    cdef PrecompileCall call = PrecompileCall.__new__(PrecompileCall)
    call.machine, call.frame, call.data = m, frame, data
    return call
