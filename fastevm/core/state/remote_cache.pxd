# The known values of a remote state, which threads read without a lock, and the recorded misses.
from libc.stdint cimport uint32_t, uint64_t

from cpython.pythread cimport PyThread_type_lock
from fastevm.core.primitives.arena cimport Arena
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.code cimport Code


cdef enum KnownKind:
    KNOWN_ACCOUNT = 1         # address; `value` is the balance
    KNOWN_SLOT = 2            # address and key
    KNOWN_BLOCK_HASH = 3      # limb 0 of the key is the number; `value` holds the hash bytes


cdef struct KnownKey:
    KnownKind kind
    Address address
    Word key


# Entries in the table never change or move.
cdef struct KnownEntry:
    KnownKey key
    Word value


cdef struct KnownAccount:
    KnownEntry entry
    uint64_t nonce
    Code* code                # owned reference; NULL = no code
    Hash code_hash
    bint exists
    bint has_storage          # at least one nonzero slot, or unknown


cdef struct KnownTable:
    size_t mask
    size_t count
    KnownTable* smaller       # the table that this table replaced: readers may still use it
    KnownEntry* entries[1]    # in fact mask + 1 entries


# Readers take no lock. Writers hold the GIL; `lock` guards the misses.
cdef struct KnownState:
    KnownTable* table
    Arena* arena
    PyThread_type_lock lock
    KnownTable* missed        # misses recorded since the last `known_forget_misses`
    Arena* missed_arena
    KnownEntry** waiting      # misses that no caller of `known_take_misses` has received yet
    size_t waiting_count
    size_t waiting_capacity


cdef KnownState* known_new() noexcept                  # NULL if out of memory
cdef void known_free(KnownState* known) noexcept
cdef size_t known_bytes(const KnownState* known) noexcept nogil
cdef const KnownEntry* known_get(const KnownState* known, const KnownKey* key) noexcept nogil
# Add a value, unless it is known already. Return False if memory is exhausted. known_put_account
# takes over the reference to the code.
cdef bint known_put(KnownState* known, const KnownKey* key, const Word* value) noexcept nogil
cdef bint known_put_account(
    KnownState* known, const Address* address, const Word* balance, uint64_t nonce, Code* code,
    bint exists, bint has_storage,
) noexcept nogil

# Records that an execution of this thread read an unknown value.
cdef void known_miss(KnownState* known, const KnownKey* key) noexcept nogil
# Returns how many unknown values this thread has read so far, from all remote states.
cdef uint64_t misses_of_thread() noexcept nogil
# Passes every waiting key to `visit` and removes it.
cdef void known_take_misses(
    KnownState* known, void (*visit)(const KnownKey* key, void* context) noexcept, void* context
) noexcept
cdef bint known_has_misses(KnownState* known) noexcept nogil
# Passes every entry to `visit`.
cdef void known_each(
    const KnownState* known, void (*visit)(const KnownEntry* entry, void* context) noexcept,
    void* context,
) noexcept
# Forgets the recorded misses, so that they can be recorded again. Call it only while no fetch is in
# progress.
cdef void known_forget_misses(KnownState* known) noexcept nogil
