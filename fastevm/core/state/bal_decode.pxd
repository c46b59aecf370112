# A block access list that came with a block (EIP-7928), as C data: what each account and slot is
# claimed to be after which index, with a table by address and one of slots for each account.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.rlp cimport RlpItem
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code
from fastevm.core.state.reader cimport AccountData, Reader


# After a block access index: a balance, a slot's value, or a nonce in limb 0.
cdef struct Claim:
    uint32_t index
    Word value


cdef struct CodeClaim:
    uint32_t index
    Code* code               # owned; NULL = no code


# The codes of one account, for whoever frees them.
cdef struct CodeClaims:
    CodeClaims* next
    CodeClaim* items
    uint32_t count


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
    uint32_t* table          # of slots, from 1: open addressing; 0: free
    uint32_t mask            # of the table, a power of two less one
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


# What the parts of a list add up to, or what runs have confirmed of it.
cdef struct ClaimSums:
    size_t items             # addresses, and slots of each
    int64_t changes          # of all values


cdef struct Claims:
    ClaimedAccount* accounts
    size_t account_count
    RlpItem* parts           # of the RLP, one for each account
    ClaimedAccount** table   # by address: open addressing, a power of two; places are atomic
    size_t mask
    CodeClaims* codes        # of all accounts: atomic
    ClaimSums sums
    uint64_t seed
    Reader below             # the state before the block


# Read the RLP; False: it is not canonical, not in order, or there is no memory. `claims_free` is
# needed in any case, and the arena lives as long as the claims.
cdef bint claims_read(
    Claims* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil
# The same in steps: open, then read each part, in any order and with the arena of the thread that
# reads it, which adds to its sums. `sums` of the claims are the caller's to fill in.
cdef bint claims_open(
    Claims* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil
cdef bint claims_read_part(Claims* c, Arena* arena, size_t at, ClaimSums* sums) noexcept nogil
cdef void claims_free(Claims* c) noexcept nogil

# The account, or NULL: the list does not name it.
cdef ClaimedAccount* claims_account(const Claims* c, const Address* address) noexcept nogil
cdef ClaimedSlot* claims_slot(
    const Claims* c, const ClaimedAccount* a, const Word* key
) noexcept nogil
# How many are of earlier indices.
cdef uint32_t claims_before(const Claim* claims, uint32_t count, uint32_t index) noexcept nogil
