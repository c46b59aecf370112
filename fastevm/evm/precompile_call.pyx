"""Stateful precompiles: Python callables that read and write the state with a journal."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memset

from fastevm.core.execution.transaction.arguments cimport gas_of
from fastevm.core.execution.transaction.transaction_lists cimport hash_entries
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.native.call cimport (
    NATIVE_NEEDS_STATE, NATIVE_OUT_OF_GAS, NATIVE_OUT_OF_MEMORY, NativeCall, native_account,
    native_charge, native_load, native_log, native_peek, native_poke, native_put_balance,
    native_put_code, native_put_log, native_put_nonce, native_store,
)
from fastevm.core.primitives.bytes_like cimport bytes_like, parse_address, slot_number
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, uint64_from_named, word_from_named, word_load, word_to_int,
)
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code

from fastevm.errors import PrecompileFailed, StateNotKnown


TOPICS_LIMIT = 4  # most topics of a log


cdef class PrecompileCall:
    """The call of a stateful precompile: its message, and the state of the current execution.

    Changes are journaled: they are undone if the precompile or one of its callers reverts. Methods
    with an ``address`` cost no gas and warm nothing. ``load``, ``store`` and ``emit`` use the
    precompile's own account at the prices of opcodes, as native contracts do. The gas used by the
    call is the sum of these prices, of the gas that ``charge`` consumes and of the gas that the
    callable returns. A change in a static call, or a charge of more gas than the call has left,
    raises ``PrecompileFailed``, which consumes all gas. The object is valid until the callable
    returns; later uses raise RuntimeError.
    """

    def __init__(self) -> None:
        raise TypeError("a PrecompileCall comes from the machine")

    cdef int check_running(self) except -1:
        if self.native == NULL:
            raise RuntimeError("the call has ended: a PrecompileCall is valid inside its callable")
        return 0

    cdef int check_writable(self) except -1:
        self.check_running()
        if self.native.is_static:
            raise PrecompileFailed("write protection: the call is static")
        return 0

    cdef int check(self, bint went_on) except -1:
        """Raises the error of a native function that ended the call, unless ``went_on``."""
        if went_on:
            return 0
        if self.native.status == NATIVE_OUT_OF_MEMORY:
            raise MemoryError
        if self.native.status == NATIVE_NEEDS_STATE:
            raise StateNotKnown("an account or a slot is not known")
        raise PrecompileFailed(
            "out of gas" if self.native.status == NATIVE_OUT_OF_GAS else "the call has failed"
        )

    cdef Account* account(self, object address) except NULL:
        cdef Address key
        cdef Account* found
        memset(&key, 0, sizeof(key))
        self.check_running()
        parse_address(address, &key, "address")
        found = native_account(self.native, &key)
        self.check(found != NULL)
        return found

    cdef Account* own_account(self) except NULL:
        """Returns the account whose storage and logs the call uses; for DELEGATECALL, the caller.
        """
        self.check_running()
        if self.native.account == NULL:
            raise PrecompileFailed("the call has no account")
        return self.native.account

    @property
    def caller(self) -> bytes:
        """The address of the account that calls."""
        self.check_running()
        return self.native.caller.b[:20]

    @property
    def origin(self) -> bytes:
        """The sender of the transaction."""
        self.check_running()
        return self.machine.transaction.origin.b[:20]

    @property
    def value(self) -> int:
        """The value of the call in wei."""
        self.check_running()
        return word_to_int(&self.native.value)

    @property
    def gas(self) -> int:
        """The gas that the call may still use."""
        self.check_running()
        return self.native.gas

    @property
    def is_static(self) -> bool:
        """Whether the call must not change the state."""
        self.check_running()
        return self.native.is_static

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
        cdef Word key, value
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        self.check(native_peek(self.native, account, &key, &value))
        return word_to_int(&value)

    def set_balance(self, address: object, balance: object) -> None:
        """Sets the balance of an account in wei."""
        cdef Account* account = self.account(address)
        cdef Word amount
        word_from_named(&amount, balance, "balance")
        self.check_writable()
        self.check(native_put_balance(self.native, account, &amount))

    def set_nonce(self, address: object, nonce: object) -> None:
        """Sets the nonce of an account."""
        cdef Account* account = self.account(address)
        number = uint64_from_named(nonce, "nonce")
        self.check_writable()
        self.check(native_put_nonce(self.native, account, number))

    def set_code(self, address: object, code: object) -> None:
        """Sets the code of an account. Frames that execute its old code continue with it."""
        cdef Account* account = self.account(address)
        cdef bytes raw = bytes_like(code, "code")
        self.check_writable()
        self.check(native_put_code(
            self.native, account, <const uint8_t*>PyBytes_AS_STRING(raw),
            <size_t>PyBytes_GET_SIZE(raw),
        ))

    def set_storage(self, address: object, slot: object, value: object) -> None:
        """Sets a slot to an int or 32 bytes."""
        cdef Account* account = self.account(address)
        cdef Word key, amount
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        word_from_named(&amount, slot_number(value, "value"), "value")
        self.check_writable()
        self.check(native_poke(self.native, account, &key, &amount))

    def log(self, address: object, topics: object, data: object = b"") -> None:
        """Adds a log of an account with at most four topics of 32 bytes."""
        cdef Account* account = self.account(address)
        cdef Word[4] words
        cdef bytes payload = bytes_like(data, "data")
        cdef uint32_t count
        memset(words, 0, sizeof(words))
        count = read_topics(topics, words)
        self.check_writable()
        self.check(native_put_log(
            self.native, &account.address, words, count,
            <const uint8_t*>PyBytes_AS_STRING(payload), <size_t>PyBytes_GET_SIZE(payload),
        ))

    def charge(self, gas: object) -> None:
        """Consumes gas. Raises PrecompileFailed if less is left."""
        cdef int64_t amount = gas_of(gas)
        self.check_running()
        self.check(native_charge(self.native, amount))

    def load(self, slot: object) -> int:
        """SLOAD: returns a slot of the precompile's account and charges for it."""
        cdef Account* account = self.own_account()
        cdef Word key, value
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        self.check(native_load(self.native, account, &key, &value))
        return word_to_int(&value)

    def store(self, slot: object, value: object) -> None:
        """SSTORE: sets a slot of the precompile's account, with its charge and refund."""
        cdef Account* account = self.own_account()
        cdef Word key, amount
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        word_from_named(&amount, slot_number(value, "value"), "value")
        self.check_writable()
        self.check(native_store(self.native, account, &key, &amount))

    def emit(self, topics: object, data: object = b"") -> None:
        """LOG0 to LOG4: adds a log of the precompile's account and charges for it."""
        cdef Account* account = self.own_account()
        cdef Word[4] words
        cdef bytes payload = bytes_like(data, "data")
        cdef uint32_t count
        memset(words, 0, sizeof(words))
        count = read_topics(topics, words)
        self.check_writable()
        self.check(native_log(
            self.native, &account.address, words, count,
            <const uint8_t*>PyBytes_AS_STRING(payload), <size_t>PyBytes_GET_SIZE(payload),
        ))


cdef uint32_t read_topics(object topics, Word* words) except? 4294967295:
    """Reads the topics of a log into ``words`` and returns their number."""
    cdef list given = hash_entries(topics, "topics")
    cdef size_t i
    if len(given) > TOPICS_LIMIT:
        raise ValueError(f"topics: expected at most {TOPICS_LIMIT}, found {len(given)}")
    for i in range(<size_t>len(given)):
        word_load(&words[i], <const uint8_t*>PyBytes_AS_STRING(given[i]))
    return <uint32_t>len(given)


cdef PrecompileCall begin_call(Machine* m, NativeCall* native, bytes data):
    cdef PrecompileCall call = PrecompileCall.__new__(PrecompileCall)
    call.machine, call.native, call.data = m, native, data
    return call
