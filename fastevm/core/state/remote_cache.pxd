# What is known of a remote state: a table that readers share without a lock, and what they missed.
from libc.stdint cimport uint32_t, uint64_t

from cpython.pythread cimport PyThread_type_lock
from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code


cdef enum KnownKind:
    KNOWN_ACCOUNT = 1         # address; `value` is the balance
    KNOWN_SLOT = 2            # address and key
    KNOWN_BLOCK_HASH = 3      # limb 0 of the key is the number; `value` holds the bytes as they are


cdef struct KnownKey:
    KnownKind kind
    Address address
    Word key


# Entries never change or move once they are in the table.
cdef struct KnownEntry:
    KnownKey key
    Word value


cdef struct KnownAccount:
    KnownEntry entry
    uint64_t nonce
    Code* code                # a reference of the table's own; NULL = no code
    Hash code_hash
    bint exists
    bint has_storage          # at least one slot that is not zero, or nobody knows


cdef struct KnownTable:
    size_t mask
    size_t count
    KnownTable* smaller       # what it replaced: a reader may still look there
    KnownEntry* entries[1]    # mask + 1 of them


# Readers take no lock. Who puts values holds the GIL; `lock` guards the misses.
cdef struct KnownState:
    KnownTable* table
    Arena* arena
    PyThread_type_lock lock
    KnownTable* missed        # asked for since the last `known_forget_misses`
    Arena* missed_arena
    KnownEntry** waiting      # missed and not yet taken by `known_take_misses`
    size_t waiting_count
    size_t waiting_capacity


cdef KnownState* known_new() noexcept                  # NULL without memory
cdef void known_free(KnownState* known) noexcept
cdef size_t known_bytes(const KnownState* known) noexcept nogil
cdef const KnownEntry* known_get(const KnownState* known, const KnownKey* key) noexcept nogil
# Takes over the reference to the account's code. What is known already stays. False: no memory.
cdef bint known_put(KnownState* known, const KnownKey* key, const Word* value) noexcept nogil
cdef bint known_put_account(
    KnownState* known, const Address* address, const Word* balance, uint64_t nonce, Code* code,
    bint exists, bint has_storage,
) noexcept nogil

# Note that a run of this thread read what is not known.
cdef void known_miss(KnownState* known, const KnownKey* key) noexcept nogil
# How often runs of this thread did so, in any state.
cdef uint64_t misses_of_thread() noexcept nogil
# Give every key that waits to `visit`; nothing waits then.
cdef void known_take_misses(
    KnownState* known, void (*visit)(const KnownKey* key, void* context) noexcept, void* context
) noexcept
cdef bint known_has_misses(KnownState* known) noexcept nogil
# Give every entry to `visit`.
cdef void known_each(
    const KnownState* known, void (*visit)(const KnownEntry* entry, void* context) noexcept,
    void* context,
) noexcept
# Note misses again that were noted before; only while nobody fetches.
cdef void known_forget_misses(KnownState* known) noexcept nogil
