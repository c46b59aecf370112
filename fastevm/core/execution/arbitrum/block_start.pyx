"""The start of an Arbitrum block: ArbOS stores the number of the L1 block, and a hash for it.

Source: Nitro, ``arbos/blockhash/blockhash.go``.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.block.system_calls cimport (
    SYSTEM_DONE, SYSTEM_NEEDS_STATE, SYSTEM_OUT_OF_MEMORY, SystemOutcome,
)
from fastevm.core.native.arbitrum.storage cimport (
    ARBOS_STATE, L1_BLOCKS, l1_hash_slot, slot_at,
)
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport Word, word_load, word_set
from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.world cimport (
    WORLD_OUT_OF_MEMORY, Checkpoint, World, world_account, world_begin_transaction,
    world_checkpoint, world_end_transaction, world_rollback, world_set_slot, world_slot,
)


cdef bint put(World* w, Account* state, const Word* key, const Word* value) noexcept nogil:
    cdef Slot* slot = world_slot(w, state, key)
    return slot != NULL and world_set_slot(w, state, slot, value)


cdef bint put_hash(
    World* w, Account* state, uint64_t number, const uint8_t* digest
) noexcept nogil:
    cdef Word key, value
    l1_hash_slot(&key, number)
    word_load(&value, digest)
    return put(w, state, &key, &value)


# Stores the parent hash for L1 block `number`, and hashes derived from it for the L1 blocks skipped
# before. `number` is the Arbitrum block's L1 block number minus 1. Returns False if a read fails.
cdef bint record(
    World* w, uint64_t number, uint64_t arbos_version, const uint8_t* parent_hash
) noexcept nogil:
    cdef Account* state = world_account(w, &ARBOS_STATE)
    cdef uint8_t data[40]
    cdef uint8_t digest[32]
    cdef uint64_t last
    cdef Slot* slot
    cdef Word key, value
    cdef int i
    if state == NULL:
        return False
    slot_at(&key, &L1_BLOCKS, 0)
    slot = world_slot(w, state, &key)
    if slot == NULL:
        return False
    last = slot.current.d[0]
    if number < last:
        return True
    if last + BLOCK_HASH_WINDOW < number:
        last = number - BLOCK_HASH_WINDOW
    memset(data, 0, sizeof(data))
    memcpy(data, parent_hash, 32)
    while last + 1 < number:
        last += 1
        if arbos_version >= 8:
            for i in range(8):
                data[32 + i] = <uint8_t>(last >> (8 * i))
        keccak256(digest, data, sizeof(data))
        if not put_hash(w, state, last, digest):
            return False
    word_set(&value, number + 1)
    return put_hash(w, state, number, parent_hash) and put(w, state, &key, &value)


cdef SystemOutcome record_l1_block(
    World* w, uint64_t l1_number, uint64_t arbos_version, const uint8_t* parent_hash
) noexcept nogil:
    cdef Checkpoint before
    if l1_number == 0:
        return SYSTEM_DONE
    memset(&before, 0, sizeof(before))
    world_begin_transaction(w)
    world_checkpoint(w, &before)
    if not record(w, l1_number - 1, arbos_version, parent_hash):
        world_rollback(w, &before)
        return SYSTEM_OUT_OF_MEMORY if w.need == WORLD_OUT_OF_MEMORY else SYSTEM_NEEDS_STATE
    return SYSTEM_DONE if world_end_transaction(w) else SYSTEM_OUT_OF_MEMORY
