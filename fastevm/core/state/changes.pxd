# The accounts and slots that a layer changed: the input of its commitment.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef struct AccountChange:
    Address address
    bint storage_reset       # the account's earlier storage was removed before the changes
    size_t first_key         # index into ChangeList.keys
    size_t key_count


cdef struct ChangeList:
    AccountChange* accounts
    size_t account_count
    size_t account_capacity
    Word* keys
    size_t key_count
    size_t key_capacity


cdef ChangeList* changes_new() noexcept nogil
cdef void changes_free(ChangeList* list) noexcept nogil
cdef AccountChange* changes_add_account(
    ChangeList* list, const Address* address, bint reset
) noexcept nogil
cdef bint changes_add_key(
    ChangeList* list, const Word* key
) noexcept nogil   # adds the slot to the account that was added last
