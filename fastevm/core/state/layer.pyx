"""Immutable versions of the state: persistent maps for reads, tries for state roots.

A layer is a map of accounts; each account holds a map of its slots. Committing a world copies only
the paths to changed entries and shares the rest, so a snapshot costs nothing and a read never walks
a chain of layers. The Merkle tries are updated when a root or a proof is requested, and after
MAX_DEPTH_WITHOUT_TRIES layers without a root.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from fastevm.core.primitives.located import READ_ERRORS, located, shown
from fastevm.core.primitives.suggestion import nearest

from fastevm.core.primitives.bytes_like cimport address_bytes, bytes_like, slot_number
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.persistent_map cimport (
    MapNode,
    map_count,
    map_each,
    map_get,
    map_release,
    map_retain,
)
from fastevm.core.primitives.thread_pool cimport TEAM_LIMIT
from fastevm.core.primitives.word cimport (
    Word, uint64_from_named, word_copy, word_from_named, word_to_int,
)
from fastevm.core.primitives.word_map cimport WordEntry, word_map_each, word_map_get
from fastevm.core.state.account cimport Account
from fastevm.core.state.changes cimport ChangeList, changes_free, changes_new
from fastevm.core.state.code cimport Code, code_new, code_retain
from fastevm.core.state.commitment cimport (
    STORAGE_TRIE_MAP,
    Commitment,
    account_nodes,
    commit_accounts,
    commit_storage,
    hash_storage,
    prove_account,
    storage_nodes,
)
from fastevm.core.state.account_map cimport (
    ACCOUNT_MAP,
    AccountLeaf,
    commit_world,
    read_account,
    read_block_hash,
    read_slot,
)
from fastevm.core.state.remote_cache cimport KnownAccount
from fastevm.core.state.tombstones cimport MASK_MAP, MaskLeaf, mask_hides, mask_of, mask_world
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.remote cimport (
    RemoteBase,
    RemoteState,
    read_remote_account,
    read_remote_block_hash,
    read_remote_code,
    read_remote_slot,
)
from fastevm.core.state.world cimport (
    WORLD_NEEDS_ACCOUNT,
    World,
    world_account,
    world_adopt_slot,
    world_begin,
    world_free,
    world_new,
    world_put_account,
    world_remove_account,
    world_reset_storage,
)
from fastevm.core.trie.parallel_hashing cimport trie_root_on
from fastevm.core.trie.trie cimport EMPTY_TRIE_ROOT, trie_release, trie_retain, trie_root

from fastevm.errors import StateNotKnown
from fastevm.core.state.source import StateSource
from fastevm.core.state.values import Account as AccountValue
from fastevm.core.state.values import AccountProof


cdef enum:
    PARALLEL_CHANGES = 1_000  # number of changed accounts and slots from which hashing uses threads
    MAX_DEPTH_WITHOUT_TRIES = 256     # consecutive layers without tries; each keeps its parent alive


FIELDS = ("balance", "nonce", "code", "storage", "reset")
LARGEST_CODE = 2**31  # bytes; the limits of protocols are far lower


cdef class Changes:
    def __cinit__(self) -> None:
        self.list = changes_new()
        if self.list == NULL:
            raise MemoryError

    def __dealloc__(self) -> None:
        changes_free(self.list)


cdef bint commit_path(Layer layer, Commitment* c, list path, int threads):
    """Commits lists of changes, oldest first, with the values of this layer."""
    cdef Changes changes
    cdef const ChangeList* work
    cdef size_t count = 0
    cdef bint ok = True
    for changes in path:
        work = changes.list
        count += work.account_count + work.key_count
        with nogil:
            ok = ok and commit_storage(c, layer.accounts, &ACCOUNT_MAP, work)
    if count < PARALLEL_CHANGES:
        threads = 1
    for changes in path if threads > 1 else ():
        work = changes.list
        with nogil:
            ok = ok and hash_storage(c, work, threads)
    for changes in path:
        work = changes.list
        with nogil:
            ok = ok and commit_accounts(c, layer.accounts, &ACCOUNT_MAP, work)
    with nogil:
        if threads > 1:
            ok = ok and trie_root_on(c.trie, threads, &c.root)
        else:
            ok = ok and trie_root(c.trie, &c.root)
    return ok


cdef class Layer:
    """An immutable version of the state. Create it with ``Layer.empty()`` or ``Layer.of(...)``."""

    def __cinit__(self) -> None:
        self.accounts = NULL
        self.trie = NULL
        self.storage_tries = NULL
        self.has_tries = True
        self.root = EMPTY_TRIE_ROOT

    def __init__(self) -> None:
        raise TypeError("layers come from Layer.empty(), Layer.of(...) or an execution")

    def __dealloc__(self) -> None:
        map_release(self.accounts, &ACCOUNT_MAP)
        trie_release(self.trie)
        map_release(self.storage_tries, &STORAGE_TRIE_MAP)
        map_release(self.masks, &MASK_MAP)

    def __reduce__(self) -> object:
        # Above a remote state: pickle the cached values, but not the source.
        shipping = import_module("fastevm.core.state.shipping")
        return shipping.unship, (shipping.ship(self),)

    def __copy__(self) -> Layer:
        return self

    def __deepcopy__(self, memo: object) -> Layer:
        return self

    def __repr__(self) -> str:
        count = map_count(self.accounts)
        accounts = "1 account" if count == 1 else f"{count} accounts"
        return f"<Layer: {accounts}{' above a remote state' if self.remote_state else ''}>"

    @staticmethod
    def empty() -> Layer:
        """Returns the empty state."""
        return Layer.__new__(Layer)

    @staticmethod
    def of(accounts: Mapping[bytes, Mapping[str, Any]]) -> Layer:
        """Returns a state with these accounts, exactly as given (including empty accounts).

        ``accounts`` maps addresses (20 bytes or hex text) to mappings with any of ``balance``
        (int, wei), ``nonce`` (int), ``code`` (bytes or hex text) and ``storage`` (mapping from
        slot to value, both int or 32 bytes; zero values are ignored). Raises TypeError, ValueError
        or OverflowError for a wrong value; the text names the account and the slot.
        """
        return Layer.empty().with_accounts(accounts)

    @staticmethod
    def remote(source: StateSource | str, **options: Any) -> Layer:
        """Returns the state of a block of another node, fetched when it is read.

        ``source`` is a StateSource, or a URL that `fastevm.fork.RemoteSource.open` opens with
        ``options``. Changes stay in local layers. Methods that list or hash (``addresses``,
        ``storage_items``, ``state_root``, ``proof``) cover local changes only.
        """
        cdef Layer layer = Layer.__new__(Layer)
        if isinstance(source, str):
            # Imported here because `fork` is a higher level than `core.state`.
            source = import_module("fastevm.fork").RemoteSource.open(source, **options)
        layer.remote_state = source if isinstance(source, RemoteState) else RemoteState(source)
        return layer

    def with_accounts(self, accounts: Mapping[bytes, Mapping[str, Any]]) -> Layer:
        """Returns this state with the given fields of accounts replaced.

        A missing field keeps its value; ``storage`` is merged slot by slot. If
        ``reset`` is true, the old slots are removed first.
        """
        if self.remote_state is None:
            return self.edited(accounts, ())
        return self.remote_state.run_resolved(lambda: self.edited(accounts, ()))

    def without_accounts(self, addresses: Iterable[bytes]) -> Layer:
        """Returns this state without the given accounts and their storage."""
        cdef list removed = list_of(addresses, "addresses")
        if self.remote_state is None:
            return self.edited({}, removed)
        return self.remote_state.run_resolved(lambda: self.edited({}, removed))

    cdef Layer edited(self, object accounts, object removed):
        """Returns this state with fields of accounts replaced and without removed accounts."""
        cdef Reader reader
        cdef World* w = world_new()
        memset(&reader, 0, sizeof(reader))
        if w == NULL:
            raise MemoryError
        try:
            self.attach(&reader)
            world_begin(w, &reader)
            for address, fields in items_of(accounts, "accounts"):
                put_account(w, address_bytes(address, "address"), fields)
            for address in removed:
                world_remove_account(w, account_named(w, address_bytes(address, "address")))
            return self.commit(w)
        finally:
            world_free(w)

    cdef void attach(self, Reader* reader) noexcept:
        """Makes a world read from this layer, which must stay alive until the execution ends."""
        if self.remote_state is not None:
            self.point(&self.guessing, self.remote_state.resolves)
            read_remotely(reader, &self.guessing)
            return
        reader.base = self.accounts
        reader.account = read_account
        reader.slot = read_slot
        reader.block_hash = read_block_hash
        reader.code = NULL

    cdef void attach_suspending(self, Reader* reader) noexcept:
        """Like ``attach``, but execution stops when it reads an unknown remote value."""
        self.attach(reader)
        if self.remote_state is not None:
            self.point(&self.suspending, True)
            reader.base = &self.suspending

    cdef void point(self, RemoteBase* base, bint suspends) noexcept:
        base.accounts = self.accounts
        base.masks = self.masks
        base.known = self.remote_state.known
        base.block_number = self.remote_state.block_number
        base.suspends = suspends
        base.resolver = <void*>self.remote_state if self.remote_state.resolves else NULL

    cdef Layer commit(self, World* w):
        """Creates the layer with the world's changes on top of this one; clears dirty marks.

        The world's next changes must be committed on the returned layer.
        """
        cdef Layer layer
        cdef Changes changes = Changes.__new__(Changes)
        cdef ChangeList* list = changes.list
        cdef MapNode* masks = NULL
        cdef MapNode* accounts
        cdef bint failed = False, has_remote = self.remote_state is not None
        with nogil:
            if has_remote:
                masks = mask_world(map_retain(self.masks), w, &failed)
            accounts = commit_world(map_retain(self.accounts), w, list, &failed)
        layer = self.followed_by(accounts, changes)
        layer.remote_state = self.remote_state
        layer.masks = masks
        if failed:
            raise MemoryError
        return layer

    cdef Layer followed_by(self, MapNode* accounts, Changes changes):
        cdef Layer layer = Layer.__new__(Layer)
        layer.accounts = accounts
        layer.changes = changes
        layer.has_tries = False
        if self.depth_without_tries >= MAX_DEPTH_WITHOUT_TRIES:
            self.update_tries()
        layer.parent = self
        layer.depth_without_tries = self.depth_without_tries + 1
        return layer

    cdef int update_tries(self, int threads=1) except -1:
        """Computes and hashes the tries of this layer's state."""
        cdef Layer layer = self
        cdef Commitment commitment
        cdef bint ok
        cdef list path = []
        memset(&commitment, 0, sizeof(commitment))
        if self.has_tries:
            return 0
        while not layer.has_tries:
            path.append(layer.changes)
            layer = layer.parent
        path.reverse()
        commitment.trie = trie_retain(layer.trie)
        commitment.storage_tries = map_retain(layer.storage_tries)
        ok = commit_path(self, &commitment, path, threads)
        if self.has_tries or not ok:  # another thread was faster, or out of memory
            trie_release(commitment.trie)
            map_release(commitment.storage_tries, &STORAGE_TRIE_MAP)
            if not ok:
                raise MemoryError
            return 0
        self.trie = commitment.trie
        self.storage_tries = commitment.storage_tries
        self.root = commitment.root
        self.has_tries = True
        self.parent = None
        self.depth_without_tries = 0
        self.changes = None
        return 0

    def state_root(self, threads: int = 1) -> bytes:
        """Returns the 32-byte state root (Yellow Paper, section 4.1), computed once.

        ``threads``: maximum number of hashing threads, used if many values changed.
        """
        if not 1 <= threads <= TEAM_LIMIT:
            raise ValueError(f"threads is a number from 1 to {TEAM_LIMIT}, not {threads}")
        self.update_tries(threads)
        return self.root.b[:32]

    @property
    def account_count(self) -> int:
        """Returns the number of accounts."""
        return map_count(self.accounts)

    cdef const AccountLeaf* leaf(self, bytes address) except? NULL:
        return <const AccountLeaf*>map_get(
            self.accounts, &ACCOUNT_MAP, <const uint8_t*><const char*>address
        )

    cdef const KnownAccount* remote_account(self, bytes address) except? NULL:
        """Returns an account from the remote state if this layer has no leaf for it.

        NULL if the account does not exist.
        """
        cdef Address key
        memcpy(key.b, <const char*>address, 20)
        if self.remote_state is None or mask_of(self.masks, &key) != NULL:
            return NULL
        return self.remote_state.account(&key)

    def account(self, address: object) -> AccountValue | None:
        """Returns balance, nonce and code hash, or None if the account does not exist."""
        cdef bytes key = address_bytes(address, "address")
        cdef const AccountLeaf* leaf = self.leaf(key)
        cdef const KnownAccount* known
        if leaf != NULL:
            return account_value(&leaf.balance, leaf.nonce, &leaf.code_hash)
        known = self.remote_account(key)
        if known != NULL:
            return account_value(&known.entry.value, known.nonce, &known.code_hash)
        return None

    def balance(self, address: object) -> int:
        """Returns the balance in wei; 0 if the account does not exist."""
        cdef bytes key = address_bytes(address, "address")
        cdef const AccountLeaf* leaf = self.leaf(key)
        cdef const KnownAccount* known
        if leaf != NULL:
            return word_to_int(&leaf.balance)
        known = self.remote_account(key)
        return 0 if known == NULL else word_to_int(&known.entry.value)

    def nonce(self, address: object) -> int:
        """Returns the nonce; 0 if the account does not exist."""
        cdef bytes key = address_bytes(address, "address")
        cdef const AccountLeaf* leaf = self.leaf(key)
        cdef const KnownAccount* known
        if leaf != NULL:
            return leaf.nonce
        known = self.remote_account(key)
        return 0 if known == NULL else known.nonce

    def code(self, address: object) -> bytes:
        """Returns the code; empty if the account has none."""
        cdef bytes key = address_bytes(address, "address")
        cdef const AccountLeaf* leaf = self.leaf(key)
        cdef const KnownAccount* known
        if leaf != NULL:
            return code_bytes(leaf.code)
        known = self.remote_account(key)
        return b"" if known == NULL else code_bytes(known.code)

    def storage(self, address: object, slot: object) -> int:
        """Returns the value of a slot; 0 if nothing was stored.

        ``slot``: an int (0 <= slot < 2**256) or 32 bytes.
        """
        cdef bytes owner = address_bytes(address, "address")
        cdef const AccountLeaf* leaf = self.leaf(owner)
        cdef const Word* found
        cdef Address account
        cdef Word key, value
        word_from_named(&key, slot_number(slot, "slot"), "slot")
        if leaf != NULL:
            found = word_map_get(leaf.storage, &key)
            if found != NULL:
                return word_to_int(found)
        if self.remote_state is None:
            return 0
        memcpy(account.b, <const char*>owner, 20)
        if mask_hides(mask_of(self.masks, &account), &key):
            return 0
        self.remote_state.slot(&account, &key, &value)
        return word_to_int(&value)

    def addresses(self) -> list[bytes]:
        """Returns the addresses of all accounts, in no particular order."""
        cdef list found = []
        map_each(self.accounts, collect_address, <void*>found)
        return found

    def hidden(self) -> dict[bytes, set[int] | None]:
        """Returns tombstones: by address, the remote slots hidden here, or None if all are."""
        cdef dict found = {}
        map_each(self.masks, collect_mask, <void*>found)
        return found

    def storage_items(self, address: object) -> dict[int, int]:
        """Returns all nonzero slots of an account."""
        cdef bytes key = address_bytes(address, "address")
        cdef const AccountLeaf* leaf = self.leaf(key)
        cdef dict found = {}
        if leaf != NULL:
            word_map_each(leaf.storage, collect_slot, <void*>found)
        return found

    def proof(self, address: object, slots: object) -> AccountProof:
        """Returns Merkle proofs of an account and of its slots (EIP-1186).

        A proof has the nodes from the root to the leaf, or to the last node if the key is absent.
        """
        cdef bytes owner = address_bytes(address, "address")
        cdef list numbers = [slot_number(slot, "slot") for slot in list_of(slots, "slots")]
        account = self.account(owner)
        self.update_tries()
        return prove_account(
            self.trie, self.storage_tries, owner, numbers, account,
            {slot: self.storage(owner, slot) for slot in numbers},
        )

    def account_path(self, path: bytes) -> list[bytes]:
        """Returns the nodes of the state trie on a 32-byte path, from the root to its end."""
        self.update_tries()
        return account_nodes(self.trie, path)

    def storage_path(self, address: bytes, path: bytes) -> list[bytes]:
        """Like `account_path`, in the storage trie of an account."""
        self.update_tries()
        return storage_nodes(self.storage_tries, address, path)


cdef object account_value(const Word* balance, uint64_t nonce, const Hash* code_hash):
    return AccountValue(
        balance=word_to_int(balance), nonce=nonce, code_hash=code_hash.b[:32]
    )


cdef bytes code_bytes(const Code* code):
    if code != NULL and code.is_unknown:
        raise StateNotKnown(f"the code with the hash 0x{code.hash.b[:32].hex()} is not known here")
    return b"" if code == NULL else code.bytes[:code.size]


cdef void read_remotely(Reader* reader, const RemoteBase* base) noexcept:
    reader.base = base
    reader.account = read_remote_account
    reader.slot = read_remote_slot
    reader.block_hash = read_remote_block_hash
    reader.code = NULL
    if base.resolver != NULL:
        reader.code = read_remote_code


cdef bint collect_address(void* leaf, void* context) noexcept with gil:
    (<list>context).append((<AccountLeaf*>leaf).address.b[:20])
    return True


cdef bint collect_mask(void* leaf, void* context) noexcept with gil:
    cdef const MaskLeaf* mask = <const MaskLeaf*>leaf
    cdef dict zeros = {}
    if not mask.whole:
        word_map_each(mask.zeros, collect_slot, <void*>zeros)
    (<dict>context)[mask.address.b[:20]] = None if mask.whole else set(zeros)
    return True


cdef bint collect_slot(const WordEntry* slot, void* context) noexcept with gil:
    (<dict>context)[word_to_int(&slot.key)] = word_to_int(&slot.value)
    return True


cdef Account* account_named(World* w, bytes address) except NULL:
    """Returns the world's record of an account."""
    cdef Address key
    cdef Account* account
    if len(address) != 20:
        raise ValueError(f"an address has 20 bytes, not {len(address)}")
    memcpy(key.b, <const char*>address, 20)
    account = world_account(w, &key)
    if account == NULL and w.need == WORLD_NEEDS_ACCOUNT:
        raise StateNotKnown(f"account 0x{address.hex()} is not known here")
    if account == NULL:
        raise MemoryError
    return account


cdef list list_of(object values, str name):
    """Returns the values as a list. Raises TypeError if they are not iterable, or are text or
    bytes.
    """
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, bytearray)):
        return list(values)
    raise TypeError(f"{name}: expected a list, found {type(values).__name__}")


cdef object items_of(object values, str name):
    if not isinstance(values, Mapping):
        raise TypeError(f"{name}: expected a mapping, found {type(values).__name__}")
    return values.items()


cdef int put_account(World* w, bytes address, fields) except -1:
    """Sets the given fields of an account. An error names the account."""
    try:
        return put_fields(w, address, fields)
    except READ_ERRORS as error:
        raise located(error, f"0x{address.hex()}", "account") from None


cdef int put_fields(World* w, bytes address, fields) except -1:
    """Sets the given fields of an account. Raises TypeError for unknown fields and for floats."""
    cdef Account* a = account_named(w, address)
    cdef Word balance
    cdef Code* code
    cdef bytes data
    cdef uint64_t nonce
    for name, _ in items_of(fields, "account"):
        if name not in FIELDS:
            near = nearest(str(name), FIELDS)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(FIELDS)}"
            raise TypeError(f"an account has no {name!r}: {hint}")
    word_copy(&balance, &a.balance)
    if "balance" in fields:
        word_from_named(&balance, fields["balance"], "balance")
    nonce = uint64_from_named(fields.get("nonce", a.nonce), "nonce")
    code = a.code
    if "code" in fields:
        data = bytes_like(fields["code"], "code")
        if len(data) > LARGEST_CODE:
            raise ValueError(f"code is at most {LARGEST_CODE} bytes")
        code = code_new(<const uint8_t*><const char*>data, len(data), NULL, False)
        if code == NULL:
            raise MemoryError
    else:
        code_retain(code)
    world_put_account(w, a, &balance, nonce, code)
    if fields.get("reset"):
        world_reset_storage(w, a)
    return put_slots(w, a, fields.get("storage", {}))


cdef int put_slots(World* w, Account* a, object storage) except -1:
    """Sets slots of an account. An error names the slot."""
    cdef Word key, value
    for slot, number in items_of(storage, "storage"):
        try:
            word_from_named(&key, slot_number(slot, "slot"), "slot")
            word_from_named(&value, slot_number(number, "value"), "value")
        except READ_ERRORS as error:
            raise located(error, f"storage[{shown(slot)}]", "slot") from None
        if not world_adopt_slot(w, a, &key, &value):
            raise MemoryError
    return 0
