"""Writes the last values of a block access list (EIP-7928) into a layer's map of accounts."""

from cpython.mem cimport PyMem_RawCalloc
from libc.stdint cimport uint32_t

from fastevm.core.primitives.persistent_map cimport MapNode, map_get, map_remove, map_set
from fastevm.core.primitives.word cimport word_copy, word_is_zero
from fastevm.core.primitives.word_map cimport word_map_put, word_map_retain
from fastevm.core.state.changes cimport ChangeList, changes_add_account, changes_add_key
from fastevm.core.state.bal_decode cimport Bal, BalAccount
from fastevm.core.state.code cimport EMPTY_CODE_HASH, code_retain
from fastevm.core.state.account_map cimport ACCOUNT_MAP, AccountLeaf


cdef bint is_empty(const AccountLeaf* leaf) noexcept nogil:
    return leaf.nonce == 0 and leaf.code == NULL and word_is_zero(&leaf.balance)


cdef AccountLeaf* leaf_after(const BalAccount* a, const AccountLeaf* old) noexcept nogil:
    """Returns the account after the block, without its slots. NULL if memory is exhausted."""
    cdef AccountLeaf* leaf = <AccountLeaf*>PyMem_RawCalloc(1, sizeof(AccountLeaf))
    if leaf == NULL:
        return NULL
    leaf.head.references = 1
    leaf.address = a.address
    leaf.code_hash = EMPTY_CODE_HASH
    if old != NULL:
        word_copy(&leaf.balance, &old.balance)
        leaf.nonce = old.nonce
        leaf.code = old.code
        leaf.code_hash = old.code_hash
    if a.balance_count:
        word_copy(&leaf.balance, &a.balances[a.balance_count - 1].value)
    if a.nonce_count:
        leaf.nonce = a.nonces[a.nonce_count - 1].value.d[0]
    if a.code_count:
        leaf.code = a.codes[a.code_count - 1].code
        leaf.code_hash = EMPTY_CODE_HASH if leaf.code == NULL else leaf.code.hash
    code_retain(leaf.code)
    return leaf


cdef bint put_slots(
    const BalAccount* a, AccountLeaf* leaf, const AccountLeaf* old, ChangeList* changes
) noexcept nogil:
    cdef uint32_t i
    if old != NULL:
        leaf.storage = word_map_retain(old.storage)
    for i in range(a.changed_slots):
        if not changes_add_key(changes, &a.slots[i].key):
            return False
        if not word_map_put(
            &leaf.storage, &a.slots[i].key, &a.slots[i].changes[a.slots[i].count - 1].value
        ):
            return False
    return True


cdef MapNode* commit_account(
    const BalAccount* a, MapNode* accounts, ChangeList* changes, bint* failed
) noexcept nogil:
    cdef const AccountLeaf* old = <const AccountLeaf*>map_get(accounts, &ACCOUNT_MAP, a.address.b)
    cdef AccountLeaf* leaf = leaf_after(a, old)
    cdef bint exists = False
    if leaf == NULL or (old != NULL and is_empty(old)):
        failed[0] = True
    else:
        exists = not is_empty(leaf)
        if not exists and old == NULL:
            ACCOUNT_MAP.destroy(leaf)
            return accounts
        failed[0] = changes_add_account(changes, &a.address, not exists) == NULL or (
            exists and not put_slots(a, leaf, old, changes)
        )
    if failed[0]:
        if leaf != NULL:
            ACCOUNT_MAP.destroy(leaf)
        return accounts
    if exists:
        return map_set(accounts, &ACCOUNT_MAP, leaf, failed)
    ACCOUNT_MAP.destroy(leaf)
    return map_remove(accounts, &ACCOUNT_MAP, a.address.b, failed)


cdef MapNode* bal_commit(
    const Bal* c, MapNode* accounts, ChangeList* changes, bint* failed
) noexcept nogil:
    cdef size_t i
    for i in range(c.account_count):
        if c.accounts[i].changes:
            accounts = commit_account(&c.accounts[i], accounts, changes, failed)
            if failed[0]:
                break
    return accounts
