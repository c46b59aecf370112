# Records the reads and changes of a block, for its block access list (EIP-7928).
#
# A record survives the rollback of its frame, but is dropped if its transaction is abandoned. When
# a transaction ends, the values before and after its changes are taken from the journal.
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.records cimport Accesses, World


# Starts recording and discards earlier records. Recording stays on until the world begins another
# execution. Returns False if memory is exhausted.
cdef bint world_record_accesses(World* w) noexcept nogil
cdef void accesses_free(Accesses* accesses) noexcept nogil
# Drops the records of an abandoned transaction.
cdef void accesses_forget(Accesses* accesses) noexcept nogil
# Keeps the transaction's records and adds its changes. Call it before the journal is cleared.
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
