# The source of a world's accounts and slots: a table of functions, called only on first access.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code


cdef enum ReadStatus:
    READ_FOUND = 0
    READ_ABSENT = 1       # the account does not exist, or the slot is zero
    READ_MISSING = 2      # the value is unknown: the host must fetch it first
    READ_RECORDED = 3     # the account does not exist, but `AccountData.storage` is set


cdef struct AccountData:
    Word balance
    uint64_t nonce
    Code* code            # NULL = no code; borrowed from the base until the execution ends
    Hash code_hash
    bint has_storage      # at least one nonzero slot (EIP-7610)
    const void* storage   # passed to `Reader.slot` for the slots of this account


cdef struct Reader:
    const void* base      # the reader's own data, borrowed
    ReadStatus (*account)(const void* base, const Address* address, AccountData* out) noexcept nogil
    ReadStatus (*slot)(
        const void* base, const void* storage, const Address* address, const Word* key, Word* out
    ) noexcept nogil
    # Whether the bytes of guarded code may be read; NULL: never. If set, addresses of an access
    # list are only marked warm: an account is read when code first accesses it.
    bint (*code)(const void* base, const Address* address, const Code* code) noexcept nogil
    ReadStatus (*block_hash)(const void* base, uint64_t number, Hash* out) noexcept nogil
