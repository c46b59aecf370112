# The multi-version memory of Block-STM: the newest committed version of each account and slot of a
# block, above a world that does not change meanwhile. Threads read it without locks and add entries
# for what they find in the world below; one thread at a time publishes new versions. None is freed
# or reused before the end, so that validation may compare addresses first. Unlike in the paper,
# writes become visible when they are committed, not before.
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
    uint32_t epoch           # how often its storage was cleared in this block
    bint exists
    bint has_storage
    AccountVersion* next_owner   # an older version that holds a reference to its code


cdef struct AccountEntry:
    AccountEntry* next       # in its bucket
    Address address
    AccountVersion* current  # read and published atomically
    AccountVersion* first    # of the world below
    bint base_has_storage    # of the world's reader, with its handle
    const void* base_storage


# Valid only if its epoch is the account's; a slot of an earlier epoch is zero.
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


# Starts above a world, for a block with this gas limit. False: out of memory.
cdef bint mv_begin(MultiVersionMemory* v, World* below, uint64_t gas_limit) noexcept nogil
# Releases all versions. No thread may read them any more; the arenas belong to their threads.
cdef void mv_end(MultiVersionMemory* v) noexcept nogil
cdef void mv_free(MultiVersionMemory* v) noexcept nogil
# The entry of an account or slot; a new entry starts with the value below. NULL: out of memory, or
# the world below does not know it. The arena is the thread's own.
cdef AccountEntry* mv_account(
    MultiVersionMemory* v, Arena* arena, const Address* address
) noexcept nogil
cdef SlotEntry* mv_slot(
    MultiVersionMemory* v, Arena* arena, AccountEntry* account, const Word* key
) noexcept nogil
# Writes the newest versions to the world below. False: out of memory.
cdef bint mv_apply(MultiVersionMemory* v) noexcept nogil
