# What a block's transactions left so far, for threads that read it while one of them goes on: the
# newest version of each account and slot above a world that rests. Readers add what they find below
# and never wait; one thread at a time publishes versions. None is freed before the end.
from libc.stdint cimport uint32_t, uint64_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport atomic_observe_pointer
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code
from fastevm.core.state.records cimport World


cdef struct AccountVersion:
    Word balance
    uint64_t nonce
    Code* code               # NULL = no code
    Hash code_hash
    uint32_t epoch           # how often all of its slots were dropped in this block
    bint exists
    bint has_storage
    AccountVersion* next_owner   # the version before that holds a reference to its code


cdef struct AccountEntry:
    AccountEntry* next       # in its bucket
    Address address
    AccountVersion* current  # read and published atomically
    AccountVersion* first    # of the world below
    bint base_has_storage    # of the world's reader, with its handle
    const void* base_storage


# Holds only where its epoch is the account's; a slot of an earlier epoch is zero.
cdef struct SlotVersion:
    Word value
    uint32_t epoch


cdef struct SlotEntry:
    SlotEntry* next
    AccountEntry* account
    Word key
    SlotVersion* current     # read and published atomically
    SlotVersion first


cdef struct Versions:
    World* below             # rests until versions_apply
    AccountEntry** accounts  # buckets, a power of two
    SlotEntry** slots
    size_t buckets
    uint64_t seed
    AccountVersion* owners   # versions that hold a reference to their code, newest first


cdef inline AccountVersion* account_version(AccountEntry* entry) noexcept nogil:
    return <AccountVersion*>atomic_observe_pointer(<void**>&entry.current)


cdef inline SlotVersion* slot_version(SlotEntry* entry) noexcept nogil:
    return <SlotVersion*>atomic_observe_pointer(<void**>&entry.current)


# Begin above a world, for a block of so much gas. False: out of memory.
cdef bint versions_begin(Versions* v, World* below, uint64_t gas_limit) noexcept nogil
# Forget all versions. Nothing may read them any more; the arenas belong to their threads.
cdef void versions_end(Versions* v) noexcept nogil
cdef void versions_free(Versions* v) noexcept nogil
# The entry of an account or slot, made from what is below if it is new; NULL: out of memory, or the
# world below lacks it. The arena is the thread's own.
cdef AccountEntry* versions_account(
    Versions* v, Arena* arena, const Address* address
) noexcept nogil
cdef SlotEntry* versions_slot(
    Versions* v, Arena* arena, AccountEntry* account, const Word* key
) noexcept nogil
# Write all newest versions to the world below. False: out of memory.
cdef bint versions_apply(Versions* v) noexcept nogil
