# A world for one transaction that runs ahead of those before it. What it loaded is what it read: it
# holds if the versions are still the same when its turn comes.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.state.records cimport World
from fastevm.core.state.multi_version cimport AccountEntry, AccountVersion, SlotEntry, SlotVersion, Versions


cdef struct SeenAccount:
    AccountEntry* entry
    const AccountVersion* version
    uint64_t nonce           # the version's, or the sender's expected one


cdef struct SeenSlot:
    SlotEntry* entry
    const SlotVersion* version
    uint64_t epoch           # of the account then


cdef struct Speculation:
    World* world             # owned
    Versions* versions       # borrowed
    Arena* arena             # of the thread that runs it: outlives the transaction
    SeenSlot* slots
    size_t slot_count
    size_t slot_capacity
    const Address* sender    # of the transaction
    uint64_t nonce           # its nonce
    bint is_ahead            # earlier transactions are not done: the sender's nonce is expected


cdef bint speculation_new(Speculation* s) noexcept nogil      # False: out of memory
cdef void speculation_free(Speculation* s) noexcept nogil
# Empty the world for a transaction.
cdef void speculation_begin(
    Speculation* s, Versions* versions, Arena* arena, const Address* sender, uint64_t nonce,
    bint is_ahead
) noexcept nogil
# Whether the transaction would have done the same on the newest versions.
cdef bint speculation_holds(Speculation* s) noexcept nogil
# Make its changes the newest versions, with the committing thread's arena. False: out of memory.
cdef bint speculation_publish(Speculation* s, Arena* arena) noexcept nogil
