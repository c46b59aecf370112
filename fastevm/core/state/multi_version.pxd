# The multi-version memory of Block-STM: the newest committed version of each account and slot of a
# block, above a world that does not change until mv_apply. Threads read it without locks and add
# entries for values that they find in the world below. One thread at a time publishes new versions.
# A version is not freed or reused before the block ends, so validation may compare pointers first.
# Unlike in the paper, writes become visible only when they are committed.
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
    uint32_t epoch           # how often the account's storage was cleared in this block
    bint exists
    bint has_storage
    AccountVersion* next_owner   # an older version that holds a reference to its code


cdef struct AccountEntry:
    AccountEntry* next       # the next entry in the bucket
    Address address
    AccountVersion* current  # the newest version; read and published atomically
    AccountVersion* first    # the version of the world below
    bint base_has_storage    # AccountData.has_storage of the world's reader
    const void* base_storage  # AccountData.storage of the world's reader


# The value of a slot in an epoch of its account. If the account has a later epoch, the slot is
# zero.
cdef struct SlotVersion:
    Word value
    uint32_t epoch


cdef struct SlotEntry:
    SlotEntry* next
    AccountEntry* account
    Word key
    SlotVersion* current     # read and published atomically
    SlotVersion first


cdef struct MultiVersionMemory:
    World* below             # unchanged until mv_apply
    AccountEntry** accounts  # buckets, a power of two
    SlotEntry** slots
    size_t buckets
    uint64_t seed
    AccountVersion* owners   # versions that hold a reference to their code, newest first


cdef inline AccountVersion* account_version(AccountEntry* entry) noexcept nogil:
    return <AccountVersion*>atomic_observe_pointer(<void**>&entry.current)


cdef inline SlotVersion* slot_version(SlotEntry* entry) noexcept nogil:
    return <SlotVersion*>atomic_observe_pointer(<void**>&entry.current)


# Starts a memory on top of a world, for a block with this gas limit. Returns False if there is not
# enough memory.
cdef bint mv_begin(MultiVersionMemory* v, World* below, uint64_t gas_limit) noexcept nogil
# Releases all versions; no thread may read them any more. Each thread frees its own arena.
cdef void mv_end(MultiVersionMemory* v) noexcept nogil
cdef void mv_free(MultiVersionMemory* v) noexcept nogil
# Return the entry of an account or slot. A new entry has the value of the world below. NULL if
# memory is exhausted or the world below misses the value. The arena must be the thread's own.
cdef AccountEntry* mv_account(
    MultiVersionMemory* v, Arena* arena, const Address* address
) noexcept nogil
cdef SlotEntry* mv_slot(
    MultiVersionMemory* v, Arena* arena, AccountEntry* account, const Word* key
) noexcept nogil
# Writes the newest versions to the world below. Returns False if memory is exhausted.
cdef bint mv_apply(MultiVersionMemory* v) noexcept nogil
