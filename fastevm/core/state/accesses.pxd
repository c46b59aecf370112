# What a block reads and changes, recorded for its access list (EIP-7928).
#
# A record outlives the rollback of the frame that made it, and goes with a transaction that does
# not end. Changes are read from the journal when a transaction ends: values before and after it.
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.records cimport Accesses, World


# Record from here on, without what was recorded before, until the world begins another run.
# False: out of memory.
cdef bint world_record_accesses(World* w) noexcept nogil
cdef void accesses_free(Accesses* accesses) noexcept nogil
# Drop what a transaction that did not end has recorded.
cdef void accesses_forget(Accesses* accesses) noexcept nogil
# Keep what the transaction recorded, and add its changes; while its journal is whole.
cdef bint accesses_keep(World* w) noexcept nogil
# Addresses, and different slots of each.
cdef size_t accesses_count(const Accesses* accesses) noexcept nogil
# Append the list's RLP; False: out of memory.
cdef bint accesses_encode(Accesses* accesses, Buffer* out) noexcept nogil

cdef void record_account(World* w, Account* a) noexcept nogil
cdef void record_slot(World* w, Account* a, Slot* s) noexcept nogil


cdef inline void world_record_account(World* w, Account* a) noexcept nogil:
    """The account is read, where accesses are recorded. Without memory the transaction fails."""
    if likely(w.accesses == NULL) or a.listing != 0:
        return
    record_account(w, a)


cdef inline void world_record_slot(World* w, Account* a, Slot* s) noexcept nogil:
    """The same for a slot, whose account is recorded too."""
    if likely(w.accesses == NULL) or s.listing != 0:
        return
    record_slot(w, a, s)
