"""The leaves of a layer's maps. A world reads the leaves; committing the world replaces them."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport process_seed
from fastevm.core.primitives.persistent_map cimport (
    MapNode,
    map_get,
    map_remove,
    map_set,
)
from fastevm.core.primitives.word cimport Word, word_copy
from fastevm.core.primitives.word_map cimport (
    WordMap,
    word_map_get,
    word_map_put,
    word_map_release,
    word_map_retain,
)
from fastevm.core.state.account cimport DIRTY_RESET, Account, Slot
from fastevm.core.state.changes cimport ChangeList, changes_add_account, changes_add_key
from fastevm.core.state.code cimport code_release, code_retain
from fastevm.core.state.reader cimport READ_ABSENT, READ_FOUND, AccountData, ReadStatus
from fastevm.core.state.world cimport World


cdef void destroy_account_leaf(void* leaf) noexcept nogil:
    cdef AccountLeaf* account = <AccountLeaf*>leaf
    code_release(account.code)
    word_map_release(account.storage)
    PyMem_RawFree(account)


ACCOUNT_MAP.key_size = 20
ACCOUNT_MAP.seed = process_seed()
ACCOUNT_MAP.destroy = destroy_account_leaf


cdef ReadStatus read_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil:
    cdef const AccountLeaf* leaf = <const AccountLeaf*>map_get(
        <const MapNode*>base, &ACCOUNT_MAP, address.b
    )
    if leaf == NULL:
        return READ_ABSENT
    word_copy(&out.balance, &leaf.balance)
    out.nonce = leaf.nonce
    out.code = leaf.code
    out.code_hash = leaf.code_hash
    out.storage = <const void*>leaf.storage
    out.has_storage = leaf.storage != 0
    return READ_FOUND


cdef ReadStatus read_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil:
    cdef const Word* value = word_map_get(<WordMap>storage, key)
    if value == NULL:
        return READ_ABSENT
    word_copy(out, value)
    return READ_FOUND


cdef ReadStatus read_block_hash(const void* base, uint64_t number, Hash* out) noexcept nogil:
    return READ_ABSENT


cdef bint put_dirty_slots(WordMap* storage, Account* a, ChangeList* changes) noexcept nogil:
    """Puts the dirty slots into the storage. Returns False if memory is exhausted."""
    cdef size_t i
    cdef Slot* s
    if a.slot_mask == 0:
        return True
    for i in range(<size_t>a.slot_mask + 1):
        s = a.slots[i]
        if s != NULL and s.dirty:
            s.dirty = 0
            if not changes_add_key(changes, &s.key):
                return False
            if not word_map_put(storage, &s.key, &s.current):
                return False
    return True


cdef AccountLeaf* account_leaf(const Account* a) noexcept nogil:
    cdef AccountLeaf* leaf = <AccountLeaf*>PyMem_RawCalloc(1, sizeof(AccountLeaf))
    if leaf != NULL:
        leaf.head.references = 1
        leaf.address = a.address
        word_copy(&leaf.balance, &a.balance)
        leaf.nonce = a.nonce
        leaf.code = a.code
        leaf.code_hash = a.code_hash
        code_retain(a.code)
    return leaf


cdef MapNode* commit_account(
    MapNode* accounts, Account* a, ChangeList* changes, bint* failed
) noexcept nogil:
    cdef const AccountLeaf* old = <const AccountLeaf*>map_get(accounts, &ACCOUNT_MAP, a.address.b)
    cdef AccountLeaf* leaf
    cdef bint reset = (a.dirty & DIRTY_RESET) != 0
    a.dirty = 0
    if not a.exists and old == NULL:
        return accounts
    if changes_add_account(changes, &a.address, reset or not a.exists) == NULL:
        failed[0] = True
        return accounts
    if not a.exists:
        return map_remove(accounts, &ACCOUNT_MAP, a.address.b, failed)
    leaf = account_leaf(a)
    if leaf == NULL:
        failed[0] = True
        return accounts
    if old != NULL and not reset:
        leaf.storage = word_map_retain(old.storage)
    if not put_dirty_slots(&leaf.storage, a, changes):
        failed[0] = True
        destroy_account_leaf(leaf)
        return accounts
    return map_set(accounts, &ACCOUNT_MAP, leaf, failed)


cdef MapNode* commit_world(
    MapNode* accounts, World* w, ChangeList* changes, bint* failed
) noexcept nogil:
    """Returns ``accounts`` with the world's changes; takes over the reference to ``accounts``."""
    cdef size_t i
    for i in range(w.account_count):
        if w.account_list[i].dirty:
            accounts = commit_account(accounts, w.account_list[i], changes, failed)
            if failed[0]:
                break
    return accounts
