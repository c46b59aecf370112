"""The state of a block of another node.

An execution reads known values. A read of an unknown value is recorded as a miss, the value is
guessed as absent or zero, and the execution continues; its result is discarded.
`RemoteState.run_resolved` fetches all misses of all threads in one request to the source and
repeats the execution, until an execution guesses nothing.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.persistent_map cimport map_get
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_from_int, word_set, word_to_int, word_zero,
)
from fastevm.core.primitives.word_map cimport WordMap, word_map_get
from fastevm.core.state.code cimport Code, code_new, code_retain, code_unknown
from fastevm.core.state.remote_cache cimport (
    KNOWN_ACCOUNT, KNOWN_BLOCK_HASH, KNOWN_SLOT, KnownAccount, KnownEntry, KnownKey,
    known_bytes, known_each, known_forget_misses, known_free, known_get, known_has_misses,
    known_miss, known_new, known_put, known_put_account, known_take_misses, misses_of_thread,
)
from fastevm.core.state.account_map cimport ACCOUNT_MAP, AccountLeaf
from fastevm.core.state.tombstones cimport MaskLeaf, mask_hides, mask_of
from fastevm.core.state.reader cimport READ_ABSENT, READ_FOUND, READ_MISSING, AccountData, ReadStatus

from fastevm.errors import ForkError, ResourceLimitError, StateNotKnown
from fastevm.core.state.source import Found, RemoteAccount, Wanted


KNOWN_LIMIT = 1 << 30
"""Default limit in bytes for the known values of a remote state: about seven million slots."""


cdef extern from *:
    """
    static __thread int fe_never_waits;
    static __thread int fe_attempts;
    """
    int fe_never_waits
    int fe_attempts           # nesting depth of `RemoteState.attempt` on this thread


def never_wait() -> None:
    """Makes this thread raise StateNotKnown instead of waiting for a remote state.

    Call it on the thread of an event loop. The caller then repeats a failed request on another
    thread.
    """
    global fe_never_waits
    fe_never_waits = 1


def may_wait() -> None:
    """Reverts `never_wait`: this thread waits for a remote state again."""
    global fe_never_waits
    fe_never_waits = 0


def guesses() -> int:
    """Returns how many unknown values the executions of this thread have read so far."""
    return misses_of_thread()


# ----------------------------------------------------------------------------------------------
# reads during execution

cdef inline void account_key(KnownKey* key, const Address* address) noexcept nogil:
    memset(key, 0, sizeof(KnownKey))
    key.kind = KNOWN_ACCOUNT
    key.address = address[0]


cdef inline void slot_key(KnownKey* key, const Address* address, const Word* slot) noexcept nogil:
    key.kind = KNOWN_SLOT
    key.address = address[0]
    word_copy(&key.key, slot)


cdef inline void block_key(KnownKey* key, uint64_t number) noexcept nogil:
    memset(key, 0, sizeof(KnownKey))
    key.kind = KNOWN_BLOCK_HASH
    word_set(&key.key, number)


# Handles a miss: returns the entry if the source resolved it, else NULL and a status.
cdef const KnownEntry* missed(
    const RemoteBase* b, const KnownKey* key, ReadStatus* status
) noexcept nogil:
    cdef bint resolved
    if b.resolver != NULL:
        with gil:
            resolved = (<RemoteState>b.resolver).resolve(key)
        status[0] = READ_MISSING
        return known_get(b.known, key) if resolved else NULL
    known_miss(b.known, key)
    status[0] = READ_MISSING if b.suspends else READ_ABSENT
    return NULL


cdef ReadStatus read_remote_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    cdef const RemoteBase* b = <const RemoteBase*>base
    cdef const AccountLeaf* leaf = <const AccountLeaf*>map_get(
        b.accounts, &ACCOUNT_MAP, address.b
    )
    cdef const MaskLeaf* mask = mask_of(b.masks, address)
    cdef const KnownAccount* account
    cdef KnownKey key
    cdef ReadStatus status = READ_ABSENT
    memset(&key, 0, sizeof(key))
    if leaf != NULL:
        word_copy(&out.balance, &leaf.balance)
        out.nonce = leaf.nonce
        out.code = leaf.code
        out.code_hash = leaf.code_hash
        out.storage = <const void*>leaf.storage
        out.has_storage = leaf.storage != 0 or (
            (leaf.code != NULL or leaf.nonce != 0) and (mask == NULL or not mask.whole)
        )
        return READ_FOUND
    if mask != NULL:
        return READ_ABSENT
    account_key(&key, address)
    account = <const KnownAccount*>known_get(b.known, &key)
    if account == NULL:
        account = <const KnownAccount*>missed(b, &key, &status)
    if account == NULL:
        return status
    if not account.exists:
        return READ_ABSENT
    word_copy(&out.balance, &account.entry.value)
    out.nonce = account.nonce
    out.code = account.code
    out.code_hash = account.code_hash
    out.storage = NULL
    out.has_storage = account.has_storage
    return READ_FOUND


cdef ReadStatus read_remote_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    cdef const RemoteBase* b = <const RemoteBase*>base
    cdef const Word* value
    cdef const KnownEntry* entry
    cdef KnownKey wanted
    cdef ReadStatus status = READ_ABSENT
    memset(&wanted, 0, sizeof(wanted))
    if storage != NULL:
        value = word_map_get(<WordMap>storage, key)
        if value != NULL:
            word_copy(out, value)
            return READ_FOUND
    if mask_hides(mask_of(b.masks, address), key):
        return READ_ABSENT
    slot_key(&wanted, address, key)
    entry = known_get(b.known, &wanted)
    if entry == NULL:
        entry = missed(b, &wanted, &status)
    if entry == NULL:
        return status
    word_copy(out, &entry.value)
    return READ_FOUND


cdef ReadStatus read_remote_block_hash(
    const void* base, uint64_t number, Hash* out
) noexcept nogil:
    cdef const RemoteBase* b = <const RemoteBase*>base
    cdef const KnownEntry* entry
    cdef KnownKey key
    cdef ReadStatus status = READ_ABSENT
    memset(&key, 0, sizeof(key))
    if number > b.block_number:
        return READ_ABSENT
    block_key(&key, number)
    entry = known_get(b.known, &key)
    if entry == NULL:
        entry = missed(b, &key, &status)
    if entry == NULL:
        return status
    memcpy(out.b, &entry.value, sizeof(Hash))
    return READ_FOUND


cdef bint read_remote_code(
    const void* base, const Address* address, const Code* code
) noexcept nogil:
    cdef const RemoteBase* b = <const RemoteBase*>base
    with gil:
        return (<RemoteState>b.resolver).open_code(address, code)


# ----------------------------------------------------------------------------------------------
# known values

cdef void want(const KnownKey* key, void* context) noexcept:
    wanted = <object>context
    if key.kind == KNOWN_ACCOUNT:
        wanted.accounts.add(key.address.b[:20])
    elif key.kind == KNOWN_SLOT:
        wanted.slots.add((key.address.b[:20], word_to_int(&key.key)))
    else:
        wanted.block_hashes.add(<uint64_t>key.key.d[0])


cdef void tell(const KnownEntry* entry, void* context) noexcept:
    cdef const KnownAccount* account
    cdef bytes code = b"", unknown = None
    found = <object>context
    if entry.key.kind == KNOWN_ACCOUNT:
        account = <const KnownAccount*>entry
        held = account.code != NULL or account.nonce != 0
        if account.code != NULL:
            if account.code.is_unknown:
                unknown = account.code_hash.b[:32]
            else:
                code = account.code.bytes[:account.code.size]
        found.accounts[entry.key.address.b[:20]] = RemoteAccount(
            word_to_int(&entry.value), account.nonce, code,
            account.exists and not (held or word_to_int(&entry.value)), unknown,
            None if account.has_storage == held else account.has_storage,
        )
    elif entry.key.kind == KNOWN_SLOT:
        location = (entry.key.address.b[:20], word_to_int(&entry.key.key))
        found.slots[location] = word_to_int(&entry.value)
    else:
        found.block_hashes[<uint64_t>entry.key.key.d[0]] = (<const uint8_t*>&entry.value)[:32]


cdef int put_address(Address* out, bytes address) except -1:
    if address is None or len(address) != 20:
        raise ValueError(f"an address has 20 bytes: {address!r}")
    memcpy(out.b, <const char*>address, 20)
    return 0


def resolved(
    layer: Any, run: Callable[[], Any], calls: Iterable[Mapping[str, Any]] = ()
) -> Any:
    """Returns ``run()``, which reads ``layer``.

    Repeats ``run`` until it guesses no remote value.
    """
    state = layer.remote_state
    return run() if state is None else state.run_resolved(run, calls)


cdef class RemoteState:
    """The known values of the state of a block, and the source of all other values.

    ``source``: a `fastevm.core.state.source.StateSource`. ``limit``: bytes of known values; a fetch
    that would exceed it raises ResourceLimitError. Any number of layers and threads may share a
    remote state.

    With ``resolves``, executions ask the source on every read of an unknown value and guess
    nothing. The source is asked only for values that the protocol reads, even with access lists. If
    the source raises, the exception is stored as ``failure`` and the execution ends with
    StateNotKnown.
    """

    def __cinit__(self, *args: object, **options: object) -> None:
        self.known = known_new()
        if self.known == NULL:
            raise MemoryError
        self.codes = {}
        self.changed = threading.Condition()

    def __init__(
        self, source: object, limit: int = KNOWN_LIMIT, *, resolves: bool = False
    ) -> None:
        self.source = source
        self.resolves = resolves
        self.block_number = source.block_number
        self.limit = limit

    def __dealloc__(self) -> None:
        known_free(self.known)

    @property
    def size(self) -> int:
        """The size of the known values in bytes."""
        return known_bytes(self.known)

    def put(self, found: Found) -> None:
        """Adds values. Does not change values that are known already."""
        cdef Address address
        cdef KnownKey key
        cdef Word value
        cdef Code* code
        cdef uint64_t nonce
        memset(&key, 0, sizeof(key))
        for where, account in found.accounts.items():
            put_address(&address, where)
            account_key(&key, &address)
            if known_get(self.known, &key) != NULL:
                continue
            word_from_int(&value, account.balance)
            nonce = account.nonce
            code = self.code(account.code, account.unknown_code)
            exists = account.balance or account.nonce or code != NULL or account.empty
            # Only code writes storage, and an account that has run code always keeps a nonce or
            # code.
            has_storage = (
                code != NULL or nonce != 0 if account.has_storage is None else account.has_storage
            )
            if not known_put_account(
                self.known, &address, &value, nonce, code, exists, has_storage
            ):
                self.codes.pop(account.code, None)  # no account uses it
                raise MemoryError
        for (where, slot), content in found.slots.items():
            memset(&key, 0, sizeof(KnownKey))
            put_address(&key.address, where)
            key.kind = KNOWN_SLOT
            word_from_int(&key.key, slot)
            word_from_int(&value, content)
            if not known_put(self.known, &key, &value):
                raise MemoryError
        for number, block_hash in found.block_hashes.items():
            if len(block_hash) != 32:
                raise ValueError(f"a block hash has 32 bytes: {block_hash!r}")
            block_key(&key, number)
            memcpy(&value, <const char*>block_hash, sizeof(Word))
            if not known_put(self.known, &key, &value):
                raise MemoryError

    cdef Code* code(self, bytes data, bytes unknown) except? NULL:
        """Returns a reference to the analysed code, shared by all accounts with this code."""
        cdef Code* code
        if unknown is not None:
            code = code_unknown(<const Hash*><const char*>exactly(unknown, 32, "code hash"))
            if code == NULL:
                raise MemoryError
            return code
        if not data:
            return NULL
        found = self.codes.get(data)
        if found is None:
            code = code_new(<const uint8_t*><const char*>data, len(data), NULL, False)
            if code == NULL:
                raise MemoryError
            code.is_guarded = self.resolves
            # The account holds the reference, and the table holds the account.
            self.codes[data] = <size_t>code
            return code
        code = <Code*><size_t>found
        code_retain(code)
        return code

    def known_values(self) -> Found:
        """Returns a copy of all known values."""
        found = Found()
        known_each(self.known, tell, <void*>found)
        return found

    # --- fetching ---

    cpdef fetch_missing(self, calls=()):
        """Fetches recorded misses, or waits for the thread that fetches them.

        ``calls``: call objects that read the values. Raises ForkError if a value is unavailable,
        and StateNotKnown on a thread that never waits.
        """
        if fe_never_waits:
            raise StateNotKnown("the state is not known here yet")
        if known_bytes(self.known) > self.limit:
            raise ResourceLimitError("known_state", f"more than {self.limit} bytes of remote state")
        wanted = Wanted(calls=list(calls))
        with self.changed:
            known_take_misses(self.known, want, <void*>wanted)
            if not wanted:
                self.await_fetch()
                return
            self.fetching += 1
        try:
            self.rounds += 1
            found = self.source.fetch(wanted)
            self.check(wanted, found)
            self.put(found)
        finally:
            with self.changed:
                self.fetching -= 1
                self.fetches += 1
                if self.fetching == 0:
                    known_forget_misses(self.known)
                self.changed.notify_all()

    cdef bint resolve(self, const KnownKey* key) noexcept:
        """Asks the source for a value. Returns False and stores the failure if it raises."""
        wanted = Wanted()
        try:
            want(key, <void*>wanted)
            if known_bytes(self.known) > self.limit:
                raise ResourceLimitError("known_state", f"more than {self.limit} bytes")
            found = self.source.fetch(wanted)
            self.check(wanted, found)
            self.put(found)
        except Exception as error:
            self.failure = error
            return False
        return True

    cdef bint open_code(self, const Address* address, const Code* code) noexcept:
        """Notifies the source that code is read. If the source raises, stores the failure and
        returns False.
        """
        try:
            self.source.read_code(address.b[:20], code.hash.b[:32])
        except Exception as error:
            self.failure = error
            return False
        return True

    cdef int await_fetch(self) except -1:
        """Waits until the fetch of another thread has ended, if there is one."""
        cdef size_t before = self.fetches
        while self.fetching and self.fetches == before:
            self.changed.wait()
        return 0

    cdef int check(self, wanted, found) except -1:
        """Raises ForkError if the source omitted a value."""
        for address in wanted.accounts - found.accounts.keys():
            raise ForkError(f"the source returned no account 0x{address.hex()}")
        for address, slot in wanted.slots - found.slots.keys():
            raise ForkError(f"the source returned no slot {slot:#x} of 0x{address.hex()}")
        for number in wanted.block_hashes - found.block_hashes.keys():
            raise ForkError(f"the source returned no hash of block {number}")
        return 0

    def fetch(self, wanted: Wanted) -> None:
        """Fetches the wanted values that are not known yet, in one request."""
        cdef KnownKey key
        for where in wanted.accounts:
            memset(&key, 0, sizeof(KnownKey))
            key.kind = KNOWN_ACCOUNT
            put_address(&key.address, where)
            self.ask(&key)
        for where, slot in wanted.slots:
            key.kind = KNOWN_SLOT
            put_address(&key.address, where)
            word_from_int(&key.key, slot)
            self.ask(&key)
        for number in wanted.block_hashes:
            block_key(&key, number)
            self.ask(&key)
        if known_has_misses(self.known):
            self.fetch_missing(wanted.calls)

    cdef void ask(self, const KnownKey* key) noexcept:
        if known_get(self.known, key) == NULL:
            known_miss(self.known, key)

    def attempt(self, run: Callable[[], Any]) -> tuple[Any, bool]:
        """Returns ``run()`` and whether it guessed. If it guessed, its errors are suppressed.

        During the call, all reads of this thread may guess, also reads from Python.
        """
        global fe_attempts
        cdef uint64_t before = misses_of_thread()
        result = None
        fe_attempts += 1
        try:
            result = run()
        except Exception:
            if misses_of_thread() == before:
                raise
            result = None
        finally:
            fe_attempts -= 1
        return result, misses_of_thread() != before

    def run_resolved(self, run: Callable[[], Any], calls: Iterable[Mapping[str, Any]] = ()) -> Any:
        """Calls ``run()`` and fetches misses until it guesses nothing. Returns its last result.

        ``run`` is called again after each fetch, so it must have no side effects. ``calls``: call
        objects in JSON form that describe ``run``; the source may prefetch the values that they
        read. Raises StateNotKnown if ``run`` guessed a value of another remote state, which this
        remote state cannot fetch.
        """
        cdef size_t before, elsewhere = 0
        while True:
            before = self.fetches
            result, guessed = self.attempt(run)
            if not guessed or fe_attempts:  # an outer attempt fetches for both
                return result
            elsewhere = elsewhere + 1 if self.misses_nothing(before) else 0
            if elsewhere == 2:
                raise StateNotKnown("the run read the state of another block")
            self.fetch_missing(calls)
            calls = ()

    cdef bint misses_nothing(self, size_t before) except -1:
        """Whether there are no misses, and no fetch ended since ``before`` was read.

        Misses of a failed fetch are forgotten, so that the next execution records them again.
        """
        with self.changed:
            if self.fetching or self.fetches != before or known_has_misses(self.known):
                return False
            known_forget_misses(self.known)
        return True

    def take_missing(self) -> Wanted:
        """Removes and returns the misses that no thread is fetching. The caller must fetch them."""
        wanted = Wanted()
        known_take_misses(self.known, want, <void*>wanted)
        known_forget_misses(self.known)
        return wanted

    # --- single values ---

    cdef const KnownAccount* account(self, const Address* address) except? NULL:
        """Returns the account, fetching it if necessary; NULL if it does not exist."""
        cdef const KnownEntry* entry
        cdef KnownKey key
        memset(&key, 0, sizeof(key))
        account_key(&key, address)
        entry = self.entry(&key)
        if entry == NULL or not (<const KnownAccount*>entry).exists:
            return NULL
        return <const KnownAccount*>entry

    cdef int slot(self, const Address* address, const Word* key, Word* out) except -1:
        cdef KnownKey wanted
        cdef const KnownEntry* entry
        memset(&wanted, 0, sizeof(wanted))
        slot_key(&wanted, address, key)
        word_zero(out)
        entry = self.entry(&wanted)
        if entry != NULL:
            word_copy(out, &entry.value)
        return 0

    cdef const KnownEntry* entry(self, const KnownKey* key) except? NULL:
        """Returns the entry of a key, fetching it if necessary. NULL inside `attempt`."""
        cdef const KnownEntry* entry = known_get(self.known, key)
        while entry == NULL:
            known_miss(self.known, key)
            if fe_attempts:
                return NULL
            self.fetch_missing()
            entry = known_get(self.known, key)
        return entry
