# A decoded block access list (EIP-7928): the changes of each account and slot, in the order of
# their block access index, with hash tables to find accounts and slots. The list is a claim of the
# block's builder; `bal_reader` validates it.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.rlp cimport RlpItem
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code
from fastevm.core.state.reader cimport AccountData, Reader


# A balance or a slot's value after a block access index, or a nonce in limb 0.
cdef struct BalChange:
    uint32_t index
    Word value


cdef struct BalCodeChange:
    uint32_t index
    Code* code               # owned; NULL = no code


# The code changes of one account, for bal_free.
cdef struct BalCodeList:
    BalCodeList* next
    BalCodeChange* items
    uint32_t count


cdef struct BalSlot:
    Word key
    BalChange* changes           # ascending; none: it is only read
    uint32_t count
    int seen                 # by a run: atomic
    const Word* base         # before the block; published by the first who reads it


cdef struct BalPreState:
    AccountData data
    bint exists


cdef struct BalAccount:
    Address address
    int seen                 # by a run: atomic
    BalSlot* slots       # those that change, then those that are only read
    uint32_t* table          # of slots, from 1: open addressing; 0: free
    uint32_t mask            # of the table, a power of two less one
    uint32_t slot_count
    uint32_t changed_slots
    uint32_t first_change    # of any slot; valid where one changes
    BalChange* balances
    uint32_t balance_count
    BalChange* nonces
    uint32_t nonce_count
    BalCodeChange* codes
    uint32_t code_count
    int64_t changes          # of all values
    const BalPreState* base  # before the block; published by the first who reads it


# The size of an access list, or how much of it executions have validated.
cdef struct BalTotals:
    size_t items             # addresses, and slots of each
    int64_t changes          # of all values


cdef struct Bal:
    BalAccount* accounts
    size_t account_count
    RlpItem* parts           # of the RLP, one for each account
    BalAccount** table   # by address: open addressing, a power of two; places are atomic
    size_t mask
    BalCodeList* codes        # of all accounts: atomic
    BalTotals sums
    uint64_t seed
    Reader below             # the state before the block


# Decodes the RLP. False: it is not canonical or not in order, or there is no memory. Call
# `bal_free` in any case; the arena has to outlive the list.
cdef bint bal_read(
    Bal* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil
# The same in steps: open, then decode each account, in any order, with the arena and the totals of
# the thread that decodes it. The caller adds the totals up in `sums`.
cdef bint bal_open(
    Bal* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil
cdef bint bal_read_part(Bal* c, Arena* arena, size_t at, BalTotals* sums) noexcept nogil
cdef void bal_free(Bal* c) noexcept nogil

# The account, or NULL if the list does not name it.
cdef BalAccount* bal_account(const Bal* c, const Address* address) noexcept nogil
cdef BalSlot* bal_slot(
    const Bal* c, const BalAccount* a, const Word* key
) noexcept nogil
# How many changes have a smaller index.
cdef uint32_t bal_changes_before(
    const BalChange* changes, uint32_t count, uint32_t index
) noexcept nogil
