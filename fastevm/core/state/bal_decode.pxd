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
    BalChange* changes       # in the order of their index; none if the slot is only read
    uint32_t count
    int seen                 # an execution has accessed the slot; atomic
    const Word* base  # value before the block; the first thread that reads the slot publishes it


cdef struct BalPreState:
    AccountData data
    bint exists


cdef struct BalAccount:
    Address address
    int seen                 # an execution has accessed the account; atomic
    BalSlot* slots           # the slots that change, then those that are only read
    uint32_t* table          # hash table, open addressing: index of a slot + 1; 0: free
    uint32_t mask            # size of the table minus one; the size is a power of two
    uint32_t slot_count
    uint32_t changed_slots
    uint32_t first_change    # lowest index at which a slot changes, if changed_slots > 0
    BalChange* balances
    uint32_t balance_count
    BalChange* nonces
    uint32_t nonce_count
    BalCodeChange* codes
    uint32_t code_count
    int64_t changes          # number of changes of all values
    # state before the block; the first thread that reads the account publishes it
    const BalPreState* base


# The size of an access list, or how much of it executions have validated.
cdef struct BalTotals:
    size_t items             # number of addresses plus slots of each
    int64_t changes          # number of changes of all values


cdef struct Bal:
    BalAccount* accounts
    size_t account_count
    RlpItem* parts           # the RLP of each account
    BalAccount** table       # hash table by address: open addressing; entries are atomic
    size_t mask              # size of the table minus one; the size is a power of two
    BalCodeList* codes       # linked list of the code changes of all accounts; atomic
    BalTotals sums
    uint64_t seed
    Reader below             # the state before the block


# Decodes the RLP of a list. Returns False if the RLP is not canonical or not in order, or if memory
# is exhausted. Call `bal_free` in any case. The arena must stay valid as long as the list.
cdef bint bal_read(
    Bal* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil
# The steps of bal_read: open, then decode each account (`at` is its index), in any order and on any
# thread. Each thread passes its own arena and totals; the caller adds the totals up in `Bal.sums`.
cdef bint bal_open(
    Bal* c, Arena* arena, const uint8_t* encoded, size_t size
) noexcept nogil
cdef bint bal_read_part(Bal* c, Arena* arena, size_t at, BalTotals* sums) noexcept nogil
cdef void bal_free(Bal* c) noexcept nogil

# Return the account or slot, or NULL if the list does not name it.
cdef BalAccount* bal_account(const Bal* c, const Address* address) noexcept nogil
cdef BalSlot* bal_slot(
    const Bal* c, const BalAccount* a, const Word* key
) noexcept nogil
# Returns how many of the changes have a smaller index than `index`.
cdef uint32_t bal_changes_before(
    const BalChange* changes, uint32_t count, uint32_t index
) noexcept nogil
