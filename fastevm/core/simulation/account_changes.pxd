# Compares the accounts before a call with the world after it.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code
from fastevm.core.state.world cimport World


cdef struct AccountBefore:
    Word balance
    uint64_t nonce
    Code* code               # a reference owned by this object


cdef class AccountsBefore:
    cdef AccountBefore* before   # one for each account loaded before the call, in the world's order
    cdef size_t count
    cdef size_t capacity

    cdef int forget(self) except -1
    # Record all accounts that the world has loaded so far.
    cdef int take(self, const World* w) except -1
    # Returns the changes of the world's current transaction: address -> AccountChange.
    cdef dict changes(self, const World* w)
    cdef int read(self, const World* w, size_t index, AccountBefore* out) except -1


# Returns the accounts that are warm at the end of the current transaction, as (address, warm
# slots).
cdef list warm_entries(const World* w)
# Returns every account and slot that the world has loaded: address -> slots.
cdef dict looked_at(const World* w)
