# Records the reads and changes of a block, for its block access list (EIP-7928).
#
# A record stays if its call frame reverts, and is removed if its transaction is abandoned before
# its end. When a transaction ends, the values before and after its changes are read from the
# journal.
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.records cimport Accesses, World


# Starts recording and discards earlier records. Recording stays on until the world begins another
# execution. Returns False if memory is exhausted.
cdef bint world_record_accesses(World* w) noexcept nogil
cdef void accesses_free(Accesses* accesses) noexcept nogil
# Removes the records of a transaction that is abandoned before its end.
cdef void accesses_forget(Accesses* accesses) noexcept nogil
# Makes the records of the ending transaction permanent and adds its changes. Call it before the
# journal is cleared.
cdef bint accesses_keep(World* w) noexcept nogil
# Returns the number of addresses plus the number of slots of each (EIP-7928's item count).
cdef size_t accesses_count(const Accesses* accesses) noexcept nogil
# Appends the RLP of the access list. Returns False if memory is exhausted.
cdef bint accesses_encode(Accesses* accesses, Buffer* out) noexcept nogil

cdef void record_account(World* w, Account* a) noexcept nogil
cdef void record_slot(World* w, Account* a, Slot* s) noexcept nogil


cdef inline void world_record_account(World* w, Account* a) noexcept nogil:
    """Records a read of the account if recording is on. The transaction fails if memory is
    exhausted.
    """
    if likely(w.accesses == NULL) or a.listing != 0:
        return
    record_account(w, a)


cdef inline void world_record_slot(World* w, Account* a, Slot* s) noexcept nogil:
    """Records a read of a slot, and of its account, if recording is on."""
    if likely(w.accesses == NULL) or s.listing != 0:
        return
    record_slot(w, a, s)
