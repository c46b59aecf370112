# A block access list that came with a block (EIP-7928), taken at its word: a transaction reads the
# state before the block with the list's changes of earlier indices, and what it did is compared
# with the list. Where everything agrees, the list is the one that the block has.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.primitives.arena cimport Arena
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.rlp cimport RlpItem
from fastevm.primitives.word cimport Word
from fastevm.state.code cimport Code
from fastevm.state.reader cimport AccountData, Reader
from fastevm.state.records cimport World


# After a block access index: a balance, a slot's value, or a nonce in limb 0.
cdef struct Claim:
    uint32_t index
    Word value


cdef struct CodeClaim:
    uint32_t index
    Code* code               # owned; NULL = no code


cdef struct ClaimedSlot:
    Word key
    Claim* changes           # ascending; none: it is only read
    uint32_t count
    int seen                 # by a run: atomic
    const Word* base         # before the block; published by the first who reads it


cdef struct ClaimedBase:
    AccountData data
    bint exists


cdef struct ClaimedAccount:
    Address address
    int seen                 # by a run: atomic
    ClaimedSlot* slots       # those that change, then those that are only read
    uint32_t slot_count
    uint32_t changed_slots
    uint32_t first_change    # of any slot; valid where one changes
    Claim* balances
    uint32_t balance_count
    Claim* nonces
    uint32_t nonce_count
    CodeClaim* codes
    uint32_t code_count
    int64_t changes          # of all values
    const ClaimedBase* base  # before the block; published by the first who reads it


cdef struct SlotPlace:
    ClaimedAccount* account
    ClaimedSlot* slot


cdef struct Claims:
    Arena* arena             # owned
    ClaimedAccount* accounts
    size_t account_count
    RlpItem* parts           # of the RLP, one for each account
    ClaimedAccount** account_table   # open addressing, a power of two
    size_t account_mask
    SlotPlace* slot_table
    size_t slot_mask
    size_t items             # addresses, and slots of each
    int64_t changes          # of all values
    uint64_t seed
    World* below             # rests while transactions run


# What a transaction of this index reads. Its arena outlives the block.
cdef struct ClaimedView:
    const Claims* claims
    Arena* arena
    uint32_t index


# Read the RLP; False: it is not canonical, not in order, or there is no memory. `claims_free` is
# needed in any case.
cdef bint claims_read(Claims* c, const uint8_t* encoded, size_t size) noexcept nogil
# The same in steps: open, read each part, in any order and with the arena of the thread that reads
# it, close. The arenas live as long as the claims.
cdef bint claims_open(Claims* c, const uint8_t* encoded, size_t size) noexcept nogil
cdef bint claims_read_part(Claims* c, Arena* arena, size_t at) noexcept nogil
cdef bint claims_close(Claims* c) noexcept nogil
cdef void claims_free(Claims* c) noexcept nogil
cdef void claims_reader(ClaimedView* view, Reader* out) noexcept nogil
# Compare what a world recorded with the list; the number of changes that it confirms, -1: there is
# a difference, or something that the list cannot say.
cdef int64_t claims_confirm(const Claims* c, World* w) noexcept nogil
# Whether runs that confirmed so many changes have read all that the list names.
cdef bint claims_complete(const Claims* c, int64_t confirmed) noexcept nogil
# Write to the world below what the list has up to this index. False: out of memory, or the list
# names what is not known.
cdef bint claims_apply(Claims* c, uint32_t last) noexcept nogil
