# The structures of a world: its tables, journal entries and logs.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.reader cimport Reader


cdef enum WorldNeed:
    NEED_NOTHING = 0
    WORLD_NEEDS_ACCOUNT = 1   # need_address
    WORLD_NEEDS_SLOT = 2      # need_address, need_key
    WORLD_NEEDS_BLOCK_HASH = 3  # need_number
    WORLD_OUT_OF_MEMORY = 4
    WORLD_NEEDS_CODE = 5      # need_address: the account's code may not be read


cdef struct LogRecord:
    Address address
    uint32_t topic_count
    Word topics[4]
    uint8_t* data            # owned by the arena
    size_t size
    uint64_t index           # position among all logs of the block, including reverted logs
    bint pseudo              # transfer pseudo log: not part of bloom and receipts


cdef enum JournalKind:
    JOURNAL_ACCOUNT_WARM
    JOURNAL_SLOT_WARM
    JOURNAL_SLOT
    JOURNAL_BALANCE
    JOURNAL_NONCE
    JOURNAL_CODE
    JOURNAL_EXISTS
    JOURNAL_TOUCH
    JOURNAL_CREATED
    JOURNAL_DESTROY
    JOURNAL_DELEGATED
    JOURNAL_TRANSIENT


cdef struct JournalEntry:
    uint32_t kind
    uint32_t stamp           # previous stamp or flag
    Account* account
    void* target              # the Slot or TransientSlot written, or the previous Code
    Word value               # previous value; limb 0 for a nonce


cdef struct TransientSlot:
    Account* account
    Word key
    Word value
    # stamp of the transaction that wrote the slot; in later transactions the slot is zero
    uint32_t tx


cdef struct Checkpoint:
    size_t journal_size
    size_t log_count
    int64_t refund


# An entry of an access list (EIP-2930) whose account or slot is not loaded before code reads it.
cdef struct Listed:
    Address address
    Word key
    bint is_slot


# A value after a block access index (EIP-7928): a balance, a nonce (limb 0), a slot's value, or
# a code hash with a copy of the code.
cdef struct Change:
    uint32_t index
    Word value
    const uint8_t* code
    size_t size


# The changes of one value in the order of their indices. `before` is the value before the last
# index that wrote.
cdef struct ChangeLog:
    Change* items            # in the arena
    uint32_t count
    uint32_t capacity
    uint32_t written         # index + 1 of the last write; 0 = never written
    Word before


cdef struct AccountAccess:
    Account* account
    ChangeLog balance
    ChangeLog nonce
    ChangeLog code


cdef struct SlotAccess:
    Account* account
    Slot* slot
    ChangeLog value


# The reads and changes of a block's transactions: see accesses.pxd.
cdef struct Accesses:
    uint32_t index           # block access index of the current transaction or system call
    bint failed              # memory was exhausted
    AccountAccess* accounts
    size_t account_count
    size_t account_capacity
    size_t accounts_kept     # records of ended transactions; accesses_forget removes later records
    SlotAccess* slots
    size_t slot_count
    size_t slot_capacity
    size_t slots_kept


cdef struct World:
    Reader reader
    Arena* arena
    uint32_t tx              # stamp of the current transaction, from 1
    int64_t refund           # refund counter of the current transaction; may be negative meanwhile
    uint64_t seed            # random seed of the hash tables, whose keys attackers can choose
    # accounts
    Account** accounts       # open addressing, a power of two
    size_t account_mask
    Account** account_list   # in order of first use
    size_t account_count
    size_t account_capacity
    # journal
    JournalEntry* journal
    size_t journal_size
    size_t journal_capacity
    # logs since world_begin
    LogRecord* logs
    size_t log_count
    size_t log_capacity
    uint64_t log_index       # next LogRecord.index
    bint log_transfers       # emit pseudo logs for ether transfers
    # rules of the fork: see Schedule
    bint clears_empty_accounts
    bint has_transfer_logs
    bint has_burn_logs
    bint selfdestruct_keeps_balance
    # touched and destroyed in this transaction; truncated on rollback through the journal
    Account** touched
    size_t touched_count
    size_t touched_capacity
    Account** destroyed
    size_t destroyed_count
    size_t destroyed_capacity
    # transient storage
    TransientSlot** transient   # open addressing, a power of two
    size_t transient_mask
    size_t transient_count
    # access list of the current transaction, if the reader defers reads (Reader.code is set)
    const Address* warm_coinbase  # warm from the start, even if not loaded; NULL: none
    bint defers_coinbase     # a transaction sets `warm_coinbase` instead of loading the account
    bint coinbase_seen       # code accessed the account at `warm_coinbase`
    Listed** listed          # hash table, open addressing, in the arena
    size_t listed_mask       # a power of two minus one
    size_t listed_count      # 0 = no table
    Accesses* accesses       # owned; NULL = not recording
    Accesses* idle_accesses  # owned; from an earlier execution, to reuse its memory; may be NULL
    # the missing value that made a read fail
    WorldNeed need
    Address need_address
    Word need_key
    uint64_t need_number
