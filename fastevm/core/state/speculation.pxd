# An optimistic execution of a transaction (Block-STM): its world above the multi-version memory,
# and its read set. Validation compares the versions in the read set with the newest versions.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.state.records cimport World
from fastevm.core.state.multi_version cimport (
    AccountEntry, AccountVersion, MultiVersionMemory, SlotEntry, SlotVersion,
)


cdef struct SeenAccount:
    AccountEntry* entry
    const AccountVersion* version
    uint64_t nonce           # nonce that was read: the version's, or the sender's expected nonce


cdef struct SeenSlot:
    SlotEntry* entry
    const SlotVersion* version
    uint64_t epoch           # epoch of the account when it was read


cdef struct Speculation:
    World* world             # owned
    MultiVersionMemory* versions       # borrowed
    Arena* arena             # arena of the executing thread, valid until the block ends
    SeenSlot* slots
    size_t slot_count
    size_t slot_capacity
    const Address* sender    # sender of the transaction
    uint64_t nonce           # nonce of the transaction
    bint is_ahead            # earlier transactions are not committed: expect the sender's nonce


cdef bint speculation_new(Speculation* s) noexcept nogil      # False if out of memory
cdef void speculation_free(Speculation* s) noexcept nogil
# Empties the world for a transaction.
cdef void speculation_begin(
    Speculation* s, MultiVersionMemory* versions, Arena* arena, const Address* sender,
    uint64_t nonce, bint is_ahead
) noexcept nogil
# Validates the execution: returns whether it would have the same effects on the newest versions.
cdef bint speculation_holds(Speculation* s) noexcept nogil
# Publishes the changes of the execution as the newest versions. `arena` is that of the committing
# thread. Returns False if memory is exhausted.
cdef bint speculation_publish(Speculation* s, Arena* arena) noexcept nogil
