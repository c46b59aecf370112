# What one call changed: accounts as they were before it against the world after it.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code
from fastevm.core.state.world cimport World


cdef struct AccountBefore:
    Word balance
    uint64_t nonce
    Code* code               # a reference of this object's own


cdef class AccountsBefore:
    cdef AccountBefore* before   # of the world's first accounts, in its order
    cdef size_t count
    cdef size_t capacity

    cdef int forget(self) except -1
    # Note all accounts that the world knows by now.
    cdef int take(self, const World* w) except -1
    # What the world's current transaction changed: address -> AccountChange.
    cdef dict changes(self, const World* w)
    cdef int read(self, const World* w, size_t index, AccountBefore* out) except -1


# What is warm at the end of the current transaction: (address, slots) pairs.
cdef list warm_entries(const World* w)
# Everything the world has looked at: address -> slots.
cdef dict looked_at(const World* w)
