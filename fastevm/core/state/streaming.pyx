"""Streams whole states in chunks, without creating a Python value for each account.

A chunk is a sequence of entries; numbers are a length followed by big-endian bytes without leading
zeros:

- code: CODE_ENTRY, size (4 bytes), bytes; codes are numbered from 1 in stream order
- account: ACCOUNT_ENTRY, address (20 bytes), balance, nonce (8 bytes), code (4 bytes; 0: none)
- tombstones of an account above a remote state: MASK_ENTRY, address (20 bytes), whether they hide
  its whole storage (1 byte); the slots that follow are hidden, whatever their values
- slot of the preceding account or tombstones: key, value; its first byte is the length of the key
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from collections.abc import Callable

from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free, buffer_reserve
from fastevm.core.primitives.hashes cimport Hash, hash_eq
from fastevm.core.primitives.intrinsics cimport process_seed
from fastevm.core.primitives.persistent_map cimport MapNode, map_each, map_release, map_set
from fastevm.core.primitives.table cimport hash_hash, table_is_full
from fastevm.core.primitives.word cimport Word, word_copy, word_is_zero, word_load_n, word_store
from fastevm.core.primitives.word_map cimport WordEntry, word_map_each, word_map_put
from fastevm.core.state.changes cimport (
    ChangeList,
    changes_add_account,
    changes_add_key,
    changes_free,
    changes_new,
)
from fastevm.core.state.code cimport EMPTY_CODE_HASH, Code, code_new, code_release, code_retain
from fastevm.core.state.commitment cimport (
    STORAGE_TRIE_MAP,
    Commitment,
    commit_accounts,
    commit_storage,
)
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.account_map cimport ACCOUNT_MAP, AccountLeaf
from fastevm.core.state.remote cimport RemoteState
from fastevm.core.state.tombstones cimport MASK_MAP, MaskLeaf
from fastevm.core.trie.trie cimport trie_release, trie_root


cdef enum:
    CHUNK_BYTES = 1 << 20     # size at which a chunk ends
    ACCOUNT_ENTRY = 0x40
    CODE_ENTRY = 0x41
    MASK_ENTRY = 0x42
    BATCH_CHANGES = 1 << 18   # accounts and slots between commitments: 10 MB of changes
    FIRST_CODES = 64


# --- writing --------------------------------------------------------------------------------------

# The codes written so far: an open-addressing table from hashes to numbers (from 1).
cdef struct CodeNumbers:
    Hash* hashes
    uint32_t* numbers         # 0 = empty slot
    size_t mask
    uint32_t count


cdef struct Stream:
    Buffer chunk
    CodeNumbers codes
    void* writer              # the StateWriter
    bint is_starved


cdef bint grow_codes(CodeNumbers* codes) noexcept nogil:
    cdef size_t capacity = 2 * (codes.mask + 1) if codes.mask else FIRST_CODES, i, at
    cdef Hash* hashes = <Hash*>PyMem_RawCalloc(capacity, sizeof(Hash))
    cdef uint32_t* numbers = <uint32_t*>PyMem_RawCalloc(capacity, sizeof(uint32_t))
    if hashes == NULL or numbers == NULL:
        PyMem_RawFree(hashes)
        PyMem_RawFree(numbers)
        return False
    for i in range(codes.mask + 1 if codes.mask else 0):
        if codes.numbers[i]:
            at = hash_hash(&codes.hashes[i], process_seed()) & (capacity - 1)
            while numbers[at]:
                at = (at + 1) & (capacity - 1)
            hashes[at] = codes.hashes[i]
            numbers[at] = codes.numbers[i]
    PyMem_RawFree(codes.hashes)
    PyMem_RawFree(codes.numbers)
    codes.hashes = hashes
    codes.numbers = numbers
    codes.mask = capacity - 1
    return True


cdef void put_be(uint8_t* out, uint64_t number, int size) noexcept nogil:
    cdef int i
    for i in range(size):
        out[i] = <uint8_t>(number >> (8 * (size - 1 - i)))


# Writes the length of a word and its bytes without leading zeros; returns the bytes written.
cdef size_t put_word(uint8_t* out, const Word* word) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef size_t skip = 0
    word_store(bytes, word)
    while skip < 32 and bytes[skip] == 0:
        skip += 1
    out[0] = <uint8_t>(32 - skip)
    memcpy(out + 1, bytes + skip, 32 - skip)
    return 33 - skip


# Returns the number of a code, writing the code first if it is new; 0 on failure.
cdef uint32_t put_code(Stream* s, const Code* code) noexcept nogil:
    cdef CodeNumbers* codes = &s.codes
    cdef uint8_t head[5]
    cdef size_t at
    if table_is_full(codes.count, codes.mask) and not grow_codes(codes):
        return 0
    at = hash_hash(&code.hash, process_seed()) & codes.mask
    while codes.numbers[at]:
        if hash_eq(&codes.hashes[at], &code.hash):
            return codes.numbers[at]
        at = (at + 1) & codes.mask
    head[0] = CODE_ENTRY
    put_be(head + 1, code.size, 4)
    if not buffer_append(&s.chunk, head, 5):
        return 0
    if not buffer_append(&s.chunk, code.bytes, code.size):
        return 0
    codes.count += 1
    codes.hashes[at] = code.hash
    codes.numbers[at] = codes.count
    return codes.count


cdef bint write_slot(const WordEntry* slot, void* context) noexcept nogil:
    cdef Stream* s = <Stream*>context
    cdef uint8_t* at
    if s.chunk.size >= CHUNK_BYTES and not flush(s):
        return False
    if not buffer_reserve(&s.chunk, s.chunk.size + 66):
        s.is_starved = True
        return False
    at = s.chunk.bytes + s.chunk.size
    at += put_word(at, &slot.key)
    at += put_word(at, &slot.value)
    s.chunk.size = <size_t>(at - s.chunk.bytes)
    return True


cdef bint write_account(void* leaf, void* context) noexcept nogil:
    cdef const AccountLeaf* account = <const AccountLeaf*>leaf
    cdef Stream* s = <Stream*>context
    cdef uint32_t code = 0
    cdef uint8_t* at
    if s.chunk.size >= CHUNK_BYTES and not flush(s):
        return False
    if account.code != NULL:
        code = put_code(s, account.code)
        if code == 0:
            s.is_starved = True
            return False
    if not buffer_reserve(&s.chunk, s.chunk.size + 66):
        s.is_starved = True
        return False
    at = s.chunk.bytes + s.chunk.size
    at[0] = ACCOUNT_ENTRY
    memcpy(at + 1, account.address.b, 20)
    at += 21
    at += put_word(at, &account.balance)
    put_be(at, account.nonce, 8)
    put_be(at + 8, code, 4)
    s.chunk.size = <size_t>(at + 12 - s.chunk.bytes)
    return word_map_each(account.storage, write_slot, context)


cdef bint write_mask(void* leaf, void* context) noexcept nogil:
    cdef const MaskLeaf* mask = <const MaskLeaf*>leaf
    cdef Stream* s = <Stream*>context
    cdef uint8_t* at
    if s.chunk.size >= CHUNK_BYTES and not flush(s):
        return False
    if not buffer_reserve(&s.chunk, s.chunk.size + 22):
        s.is_starved = True
        return False
    at = s.chunk.bytes + s.chunk.size
    at[0] = MASK_ENTRY
    memcpy(at + 1, mask.address.b, 20)
    at[21] = mask.whole
    s.chunk.size += 22
    return word_map_each(mask.zeros, write_slot, context)


cdef bint flush(Stream* s) noexcept with gil:
    return (<StateWriter>s.writer).hand_over()


cdef class StateWriter:
    """The stream of one state; see `write_state`."""

    cdef Stream stream
    cdef object sink, error

    def __cinit__(self, sink: Callable[[bytes], object]) -> None:
        self.stream.writer = <void*>self
        self.sink = sink

    def __dealloc__(self) -> None:
        buffer_free(&self.stream.chunk)
        PyMem_RawFree(self.stream.codes.hashes)
        PyMem_RawFree(self.stream.codes.numbers)

    cdef bint hand_over(self):
        """Passes the chunk to the sink. Returns False if the sink raises."""
        cdef Buffer* chunk = &self.stream.chunk
        try:
            self.sink(PyBytes_FromStringAndSize(<const char*>chunk.bytes, <Py_ssize_t>chunk.size))
        except BaseException as error:
            self.error = error
            return False
        chunk.size = 0
        return True

    cdef int write(self, Layer layer) except -1:
        cdef bint ok
        with nogil:
            ok = map_each(layer.accounts, write_account, &self.stream)
            ok = ok and map_each(layer.masks, write_mask, &self.stream)
        if ok and self.stream.chunk.size:
            self.hand_over()
        if self.stream.is_starved:
            raise MemoryError
        if self.error is not None:
            raise self.error
        return 0


def write_state(Layer layer not None, sink: Callable[[bytes], object]) -> None:
    """Calls ``sink`` with the chunks of a state in order, each of about 1 MiB.

    Above a remote state, the chunks contain only local changes. The GIL is released between the
    calls. An exception raised by ``sink`` ends the stream.
    """
    StateWriter(sink).write(layer)


# --- reading --------------------------------------------------------------------------------------

cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef inline size_t left(const Cursor* c) noexcept nogil:
    return <size_t>(c.end - c.at)


cdef uint64_t take_be(Cursor* c, int size) noexcept nogil:
    cdef uint64_t number = 0
    cdef int i
    for i in range(size):
        number = number << 8 | c.at[i]
    c.at += size
    return number


# Reads a word of `size` bytes.
cdef bint take_word(Cursor* c, size_t size, Word* out) noexcept nogil:
    if size > 32 or left(c) < size:
        return False
    word_load_n(out, c.at, size)
    c.at += size
    return True


# Reads a length and a word of that many bytes.
cdef bint take_sized_word(Cursor* c, Word* out) noexcept nogil:
    if left(c) < 1:
        return False
    c.at += 1
    return take_word(c, (c.at - 1)[0], out)


cdef class StateReader:
    """Builds a layer from the chunks of `write_state`. Not thread-safe.

    ``below``: the remote state below the layer that was written, or None. A layer above a remote
    state has no state root, so no tries are built.
    """

    cdef RemoteState below
    cdef MapNode* masks
    cdef MaskLeaf* mask            # the newest leaf of `masks` if the last entry was tombstones
    cdef MapNode* accounts
    cdef Commitment commitment
    cdef ChangeList* changes
    cdef AccountLeaf* account      # the newest account in `accounts`
    cdef bint is_listed            # `account` is the last item of `changes`
    cdef Code** codes
    cdef size_t code_count, code_capacity
    cdef bint is_starved

    def __cinit__(self, RemoteState below = None) -> None:
        self.below = below
        self.changes = changes_new()
        if self.changes == NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        cdef size_t i
        map_release(self.accounts, &ACCOUNT_MAP)
        map_release(self.masks, &MASK_MAP)
        trie_release(self.commitment.trie)
        map_release(self.commitment.storage_tries, &STORAGE_TRIE_MAP)
        changes_free(self.changes)
        for i in range(self.code_count):
            code_release(self.codes[i])
        PyMem_RawFree(self.codes)

    def add(self, bytes chunk not None) -> None:
        """Reads the next chunk. Raises ValueError for damaged data; the reader is unusable then."""
        cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(chunk)
        cdef Cursor c = Cursor(start, start + PyBytes_GET_SIZE(chunk))
        cdef bint ok
        with nogil:
            ok = self.take_entries(&c)
        if self.is_starved:
            raise MemoryError
        if not ok:
            raise ValueError(f"a damaged state: byte {c.at - start} of a chunk")

    def finish(self) -> Layer:
        """Returns the layer. Computes its state root unless the layer is above a remote state.

        The reader is unusable afterwards.
        """
        cdef Layer layer = Layer.__new__(Layer)
        cdef bint ok
        with nogil:
            ok = self.commit() and trie_root(self.commitment.trie, &self.commitment.root)
        if not ok:
            raise MemoryError
        layer.accounts = self.accounts
        layer.trie = self.commitment.trie
        layer.storage_tries = self.commitment.storage_tries
        layer.root = self.commitment.root
        layer.has_tries = True
        layer.remote_state = self.below
        layer.masks = self.masks
        self.masks = NULL
        self.mask = NULL
        self.accounts = self.commitment.storage_tries = NULL
        self.commitment.trie = NULL
        self.account = NULL
        return layer

    cdef bint take_entries(self, Cursor* c) noexcept nogil:
        cdef uint8_t kind
        while left(c):
            kind = c.at[0]
            c.at += 1
            if kind <= 32:
                if not self.take_slot(c, kind):
                    return False
            elif kind == ACCOUNT_ENTRY:
                if not self.take_account(c):
                    return False
            elif kind == MASK_ENTRY:
                if not self.take_mask(c):
                    return False
            elif kind != CODE_ENTRY or not self.take_code(c):
                return False
            if self.changes.account_count + self.changes.key_count >= BATCH_CHANGES:
                if self.below is None and not self.commit():
                    return self.starve()
        return True

    cdef bint take_code(self, Cursor* c) noexcept nogil:
        cdef size_t size, capacity
        cdef Code** moved
        if left(c) < 4:
            return False
        size = <size_t>take_be(c, 4)
        if left(c) < size:
            return False
        if self.code_count == self.code_capacity:
            capacity = 2 * self.code_capacity if self.code_capacity else FIRST_CODES
            moved = <Code**>PyMem_RawRealloc(self.codes, capacity * sizeof(Code*))
            if moved == NULL:
                return self.starve()
            self.codes = moved
            self.code_capacity = capacity
        self.codes[self.code_count] = code_new(c.at, size, NULL, False)
        if self.codes[self.code_count] == NULL:
            return self.starve()
        self.code_count = self.code_count + 1
        c.at += size
        return True

    cdef bint take_account(self, Cursor* c) noexcept nogil:
        cdef AccountLeaf* leaf
        cdef const uint8_t* address = c.at
        cdef Word balance
        cdef uint64_t nonce, code
        cdef bint failed = False
        if left(c) < 20:
            return False
        c.at += 20
        if not take_sized_word(c, &balance) or left(c) < 12:
            return False
        nonce = take_be(c, 8)
        code = take_be(c, 4)
        if code > self.code_count:
            return False
        leaf = <AccountLeaf*>PyMem_RawCalloc(1, sizeof(AccountLeaf))
        if leaf == NULL:
            return self.starve()
        leaf.head.references = 1
        memcpy(leaf.address.b, address, 20)
        word_copy(&leaf.balance, &balance)
        leaf.nonce = nonce
        leaf.code_hash = EMPTY_CODE_HASH
        if code:
            leaf.code = self.codes[code - 1]
            leaf.code_hash = leaf.code.hash
            code_retain(leaf.code)
        self.account = leaf
        self.mask = NULL
        self.is_listed = False
        self.accounts = map_set(self.accounts, &ACCOUNT_MAP, leaf, &failed)
        if failed:
            self.account = NULL
        return self.starve() if failed else self.list_account()

    cdef bint take_mask(self, Cursor* c) noexcept nogil:
        cdef MaskLeaf* mask
        cdef const uint8_t* address = c.at
        cdef bint failed = False
        if self.below is None or left(c) < 21:
            return False
        c.at += 21
        mask = <MaskLeaf*>PyMem_RawCalloc(1, sizeof(MaskLeaf))
        if mask == NULL:
            return self.starve()
        mask.head.references = 1
        memcpy(mask.address.b, address, 20)
        mask.whole = address[20] != 0
        self.masks = map_set(self.masks, &MASK_MAP, mask, &failed)
        self.mask = NULL if failed else mask
        return self.starve() if failed else True

    cdef bint take_slot(self, Cursor* c, size_t key_size) noexcept nogil:
        cdef Word key, value
        if not take_word(c, key_size, &key):
            return False
        if not take_sized_word(c, &value) or word_is_zero(&value):
            return False
        if self.mask != NULL:
            return True if word_map_put(&self.mask.zeros, &key, &value) else self.starve()
        if self.account == NULL:
            return False
        if self.below is not None:
            return True if word_map_put(&self.account.storage, &key, &value) else self.starve()
        if not self.list_account():
            return False
        if not changes_add_key(self.changes, &key):
            return self.starve()
        if not word_map_put(&self.account.storage, &key, &value):
            return self.starve()
        return True

    # Adds the account to the changes of this batch. If the slots of a large account are in several
    # batches, each batch lists the account.
    cdef bint list_account(self) noexcept nogil:
        if self.is_listed or self.below is not None:
            return True
        if changes_add_account(self.changes, &self.account.address, False) == NULL:
            return self.starve()
        self.is_listed = True
        return True

    # Updates the tries with the accounts and slots of this batch.
    cdef bint commit(self) noexcept nogil:
        cdef Commitment* c = &self.commitment
        if not commit_storage(c, self.accounts, &ACCOUNT_MAP, self.changes):
            return False
        if not commit_accounts(c, self.accounts, &ACCOUNT_MAP, self.changes):
            return False
        self.changes.account_count = 0
        self.changes.key_count = 0
        self.is_listed = False
        return True

    cdef bint starve(self) noexcept nogil:
        self.is_starved = True
        return False
