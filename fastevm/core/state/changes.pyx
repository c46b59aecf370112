"""Lists of changed accounts and slots, collected while a world is committed."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawRealloc

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word, word_copy


cdef enum:
    FIRST_ITEMS = 8


cdef ChangeList* changes_new() noexcept nogil:
    return <ChangeList*>PyMem_RawCalloc(1, sizeof(ChangeList))


cdef void changes_free(ChangeList* list) noexcept nogil:
    if list != NULL:
        PyMem_RawFree(list.accounts)
        PyMem_RawFree(list.keys)
        PyMem_RawFree(list)


cdef AccountChange* changes_add_account(
    ChangeList* list, const Address* address, bint reset
) noexcept nogil:
    cdef size_t capacity
    cdef AccountChange* moved
    cdef AccountChange* change
    if list.account_count == list.account_capacity:
        capacity = list.account_capacity * 2 if list.account_capacity else FIRST_ITEMS
        moved = <AccountChange*>PyMem_RawRealloc(list.accounts, capacity * sizeof(AccountChange))
        if moved == NULL:
            return NULL
        list.accounts = moved
        list.account_capacity = capacity
    change = &list.accounts[list.account_count]
    list.account_count += 1
    change.address = address[0]
    change.storage_reset = reset
    change.first_key = list.key_count
    change.key_count = 0
    return change


cdef bint changes_add_key(ChangeList* list, const Word* key) noexcept nogil:
    cdef size_t capacity
    cdef Word* moved
    if list.key_count == list.key_capacity:
        capacity = list.key_capacity * 2 if list.key_capacity else FIRST_ITEMS
        moved = <Word*>PyMem_RawRealloc(list.keys, capacity * sizeof(Word))
        if moved == NULL:
            return False
        list.keys = moved
        list.key_capacity = capacity
    word_copy(&list.keys[list.key_count], key)
    list.key_count += 1
    list.accounts[list.account_count - 1].key_count += 1
    return True
