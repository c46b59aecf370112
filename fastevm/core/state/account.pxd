# The accounts and slots of a world, with warm marks and original values.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word, word_copy, word_lt, word_sub
from fastevm.core.state.code cimport Code


# Kinds of changes to an account since the last commit of the world.
cdef enum Dirty:
    DIRTY_FIELDS = 1      # balance, nonce, code or existence
    DIRTY_STORAGE = 2     # slots marked dirty
    DIRTY_RESET = 4       # the account's earlier storage was removed


cdef struct Slot:
    Word key
    Word current
    # value at the start of transaction `written_tx`; in any other transaction read `current`
    Word original
    uint32_t written_tx   # the last transaction that wrote this slot
    uint32_t warm_tx      # warm when equal to the world's current transaction
    uint32_t dirty        # written since the last commit: the next commit includes the slot
    uint32_t listing      # position among the recorded accesses, from 1; 0 = not recorded


cdef struct Account:
    Address address
    uint32_t warm_tx      # warm when equal to the world's current transaction
    Word balance
    uint64_t nonce
    Code* code            # NULL = no code
    Hash code_hash
    uint32_t created_tx   # created as a contract in this transaction
    uint32_t touched_tx   # in the list of accounts touched in this transaction
    uint32_t destroyed_tx  # in the list of accounts destroyed at the end of this transaction
    uint32_t delegated_tx  # its delegation costs no state gas in this transaction
    bint exists
    bint owns_code        # this record, and not the base, owns the reference to `code`
    uint32_t dirty        # bits of Dirty: what the next commit includes
    uint32_t listing      # position among the recorded accesses, from 1; 0 = not recorded
    bint balance_seen     # the execution has observed the value of the balance
    bint balance_taken    # the execution has only observed that the balance covers some amounts
    bint nonce_seen       # the execution has observed the nonce, not only whether it is zero
    bint storage_reset    # slots that are not loaded are zero, whatever the base has
    bint base_has_storage
    const void* storage   # AccountData.storage of the reader
    Slot** slots          # open addressing, a power of two
    uint32_t slot_mask    # 0 = no table yet
    uint32_t slot_count
    uint64_t index        # position in the world's account list
    Word lowest           # if balance_taken: the lowest balance after a payment; else unset


# Returns whether the balance is at least `amount`, and records that the execution has observed
# this.
cdef inline bint account_covers(Account* a, const Word* amount) noexcept nogil:
    cdef Word rest
    if word_lt(&a.balance, amount):
        a.balance_seen = True
        return False
    word_sub(&rest, &a.balance, amount)
    if not a.balance_taken or word_lt(&rest, &a.lowest):
        a.balance_taken = True
        word_copy(&a.lowest, &rest)
    return True
