"""Answers reads of the newest state (``eth_getBalance`` and others), from request text to answer
text.

Wallets and indexers send batches of such calls. This module parses the calls into C values, reads
the state and writes the answer without Python objects. The Python path answers all other calls.
"""

from enum import Enum

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_free,
    json_hex,
    json_hex_word,
    json_put,
    json_quantity,
    json_quantity_word,
    json_raw,
)
from fastevm.core.primitives.word cimport Word, word_zero
from fastevm.rpc_types.text.json_reader cimport (
    STEP_END,
    STEP_MORE,
    Cursor,
    Key,
    Step,
    hex_word,
    is_key,
    next_item,
    next_member,
    once,
    skip_space,
    take,
    take_fixed,
    take_text,
)
from fastevm.core.state.remote_cache cimport misses_of_thread
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport READ_FOUND, AccountData, Reader


class Read(Enum):
    """The value that a method reads. The params locate the value (address and slot), followed
    by a block tag if the value is part of a state.
    """

    BLOCK_NUMBER = 0
    CHAIN_ID = 1
    BALANCE = 2
    NONCE = 3
    CODE = 4
    STORAGE = 5


cdef enum Kind:
    BLOCK_NUMBER = 0
    CHAIN_ID = 1
    BALANCE = 2
    NONCE = 3
    CODE = 4
    STORAGE = 5
    KINDS = 6

cdef enum Member:
    JSONRPC = 0
    ID = 1
    METHOD = 2
    PARAMS = 3

cdef enum:
    KEPT = 1 << 20            # memory kept for the next answer, in bytes


# A parsed call. The pointers to texts point into the body.
cdef struct Call:
    const char* id
    size_t id_size
    const char* params        # start of the array; NULL if there is none
    Kind kind
    bint of_pending
    Address address
    Word slot


cdef struct Name:
    const char* text
    size_t size


# --- reading ---

# Reads an id: digits, or a string without escapes.
cdef bint take_id(Cursor* c, Call* call) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t size = 0, i
    skip_space(c)
    call.id = c.at
    if c.at < c.end and c.at[0] == c'"':
        if not take_text(c, &text, &size):
            return False
        for i in range(size):
            if text[i] < 0x20 or text[i] > 0x7e or text[i] == c'\\':
                return False
    else:
        while c.at < c.end and c'0' <= c.at[0] <= c'9':
            c.at += 1
        if c.at == call.id or (call.id[0] == c'0' and c.at - call.id > 1):
            return False
        # not an integer: a fraction or an exponent follows the digits
        if c.at < c.end and c.at[0] != c',' and c.at[0] != c'}' and c.at[0] > 0x20:
            return False
    call.id_size = <size_t>(c.at - call.id)
    return True


# Reads the hex of a storage position: up to 32 bytes, with or without leading zeros.
cdef bint take_slot(Cursor* c, Word* slot) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t size = 0
    if not take_text(c, &text, &size) or size < 3 or text[0] != c'0' or text[1] != c'x':
        return False
    return hex_word(text + 2, size - 2, slot)


cdef bint take_tag(Cursor* c, bint* is_pending) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t size = 0
    if not take_text(c, &text, &size):
        return False
    is_pending[0] = size == 7 and memcmp(text, b"pending", 7) == 0
    return is_pending[0] or (size == 6 and memcmp(text, b"latest", 6) == 0)


# Reads the parameters of a call with a known method.
cdef bint take_params(Cursor* c, Call* call) noexcept nogil:
    if not take(c, c'['):
        return False
    if call.kind != BLOCK_NUMBER and call.kind != CHAIN_ID:
        if not take_fixed(c, call.address.b, 20) or not take(c, c','):
            return False
        if call.kind == STORAGE and not (take_slot(c, &call.slot) and take(c, c',')):
            return False
        if not take_tag(c, &call.of_pending):
            return False
    return take(c, c']')


# Skips an array of strings, numbers and names. Returns False for nested values.
cdef bint skip_params(Cursor* c) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t size = 0
    if not take(c, c'['):
        return False
    while c.at < c.end:
        if c.at[0] == c'"':
            if not take_text(c, &text, &size):
                return False
        elif c.at[0] == c'[' or c.at[0] == c'{' or c.at[0] == c'}':
            return False
        elif c.at[0] == c']':
            break
        else:
            c.at += 1
    return take(c, c']')


cdef bint take_version(Cursor* c) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t size = 0
    return take_text(c, &text, &size) and size == 3 and memcmp(text, b"2.0", 3) == 0


cdef class StateReads:
    """Parses a request body, then answers it."""

    cdef Call* calls
    cdef size_t limit, count
    cdef Name[KINDS] names
    cdef list methods            # (name, kind of read); owns the texts of `names`
    cdef size_t[KINDS] counts
    cdef bytes body              # `calls` points into it
    cdef bint is_batch
    cdef readonly bint wants_pending
    cdef readonly bint wants_next_nonce
    cdef JsonText text

    def __cinit__(self, methods: object, limit: int) -> None:
        cdef bytes name
        cdef int kind
        self.limit = limit
        self.calls = <Call*>calloc(self.limit, sizeof(Call))
        if self.calls == NULL:
            raise MemoryError
        memset(self.names, 0, sizeof(self.names))
        self.text = JsonText(Buffer(NULL, 0, 0), False)
        self.methods = [None] * KINDS
        for method, what in methods.items():
            kind, name = what.value, method.encode()
            self.methods[kind] = (method, name)
            self.names[kind] = Name(PyBytes_AS_STRING(name), <size_t>PyBytes_GET_SIZE(name))

    def __dealloc__(self) -> None:
        free(self.calls)
        json_free(&self.text)

    def read(self, body: bytes) -> bool:
        """Parses a body for `answer`. Returns False if the body has any other form."""
        cdef Cursor c = Cursor(
            PyBytes_AS_STRING(body), PyBytes_AS_STRING(body) + PyBytes_GET_SIZE(body)
        )
        self.count = 0
        self.wants_pending = self.wants_next_nonce = False
        memset(self.counts, 0, sizeof(self.counts))
        self.is_batch = take(&c, c'[')
        cdef bint found = self.take_batch(&c) if self.is_batch else self.take_call(&c)
        skip_space(&c)
        self.body = body if found and c.at == c.end else None
        return self.body is not None

    cdef bint take_batch(self, Cursor* c) noexcept:
        cdef size_t items = 0
        cdef Step step = next_item(c, &items)
        while step == STEP_MORE:
            if self.count == self.limit or not self.take_call(c):
                return False
            step = next_item(c, &items)
        return step == STEP_END and items > 0

    # Reads a request object. The method may come before or after the params.
    cdef bint take_call(self, Cursor* c) noexcept:
        cdef Call* call = &self.calls[self.count]
        cdef Key key = Key(NULL, 0, 0)
        cdef size_t members = 0
        cdef Step step
        cdef Cursor params
        memset(&params, 0, sizeof(params))
        call.params = NULL
        call.of_pending = False
        if not take(c, c'{'):
            return False
        step = next_member(c, &members, &key)
        while step == STEP_MORE:
            if not self.take_member(c, &key, call):
                return False
            step = next_member(c, &members, &key)
        if step != STEP_END or key.seen & 0b111 != 0b111:
            return False
        if call.params == NULL:
            if call.kind != BLOCK_NUMBER and call.kind != CHAIN_ID:
                return False
        else:
            params = Cursor(call.params, c.end)
            if not take_params(&params, call):
                return False
        self.count += 1
        self.counts[<int>call.kind] += 1
        if call.of_pending:
            self.wants_pending = True
            self.wants_next_nonce = self.wants_next_nonce or call.kind == NONCE
        return True

    cdef bint take_member(self, Cursor* c, Key* key, Call* call) noexcept:
        if is_key(key, b"jsonrpc"):
            return once(key, JSONRPC) and take_version(c)
        if is_key(key, b"id"):
            return once(key, ID) and take_id(c, call)
        if is_key(key, b"method"):
            return once(key, METHOD) and self.take_method(c, &call.kind)
        if is_key(key, b"params") and once(key, PARAMS):
            skip_space(c)
            call.params = c.at
            return skip_params(c)
        return False

    cdef bint take_method(self, Cursor* c, Kind* kind) noexcept:
        cdef const char* text = NULL
        cdef size_t size = 0, i
        if not take_text(c, &text, &size) or size == 0:
            return False
        for i in range(<size_t>KINDS):
            if self.names[i].size == size and memcmp(self.names[i].text, text, size) == 0:
                kind[0] = <Kind>i
                return True
        return False

    def answer(
        self, latest: object, pending: object, number: int, chain_id: int, limit: int
    ) -> bytes | None:
        """Returns the answer to the body that `read` parsed last.

        Returns None if the answer would exceed ``limit`` bytes, if a state is not a Layer, or if a
        value of a forked state is not fetched yet.
        """
        cdef uint64_t head = number, chain = chain_id
        cdef size_t room = limit, i
        cdef Reader[2] readers
        cdef uint64_t misses = misses_of_thread()
        if not isinstance(latest, Layer) or not isinstance(pending, Layer):
            return None
        (<Layer>latest).attach(&readers[0])
        (<Layer>pending).attach(&readers[1])
        self.text.out.size = 0
        if self.is_batch:
            json_put(&self.text, b"[")
        for i in range(self.count):
            if i:
                json_put(&self.text, b",")
            self.write(&self.calls[i], &readers[<int>self.calls[i].of_pending], head, chain)
            if self.text.out.size > room:
                break
        if self.is_batch:
            json_put(&self.text, b"]")
        self.body = None
        answer = self.taken(room)
        # None: a handler must fetch missing values
        return answer if misses_of_thread() == misses else None

    cdef bytes taken(self, size_t room):
        cdef bytes answer = None
        if not self.text.starved and self.text.out.size <= room:
            answer = PyBytes_FromStringAndSize(
                <char*>self.text.out.bytes, <Py_ssize_t>self.text.out.size
            )
        if self.text.starved or self.text.out.capacity > KEPT:
            json_free(&self.text)
        return answer

    cdef void write(
        self, const Call* call, const Reader* reader, uint64_t number, uint64_t chain_id
    ) noexcept:
        cdef JsonText* t = &self.text
        cdef AccountData account
        memset(&account, 0, sizeof(account))
        json_put(t, b'{"jsonrpc":"2.0","id":')
        json_raw(t, call.id, call.id_size)
        json_put(t, b',"result":')
        if call.kind == BLOCK_NUMBER:
            json_quantity(t, number)
        elif call.kind == CHAIN_ID:
            json_quantity(t, chain_id)
        else:
            if reader.account(reader.base, &call.address, &account) != READ_FOUND:
                memset(&account, 0, sizeof(AccountData))
            write_of_account(t, call, reader, &account)
        json_put(t, b"}")

    def counts_by_method(self) -> list[tuple[str, int]]:
        """Returns how many calls of each method the last body had."""
        cdef size_t kind
        return [
            (self.methods[kind][0], self.counts[kind])
            for kind in range(<size_t>KINDS) if self.counts[kind]
        ]


# Reads a value of an account; all values are zero if there is no account.
cdef void write_of_account(
    JsonText* t, const Call* call, const Reader* reader, const AccountData* account
) noexcept nogil:
    cdef Word value
    if call.kind == BALANCE:
        json_quantity_word(t, &account.balance)
    elif call.kind == NONCE:
        json_quantity(t, account.nonce)
    elif call.kind == CODE:
        if account.code == NULL:
            json_put(t, b'"0x"')
        else:
            json_hex(t, account.code.bytes, account.code.size)
    else:
        if not account.has_storage or reader.slot(
            reader.base, account.storage, &call.address, &call.slot, &value
        ) != READ_FOUND:
            word_zero(&value)
        json_hex_word(t, &value)
