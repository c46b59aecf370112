"""Tombstones above a remote state: removed accounts, removed storage, slots set to zero."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport process_seed
from fastevm.core.primitives.persistent_map cimport MapNode, map_get, map_set
from fastevm.core.primitives.word cimport Word, word_is_zero, word_set
from fastevm.core.primitives.word_map cimport (
    word_map_get,
    word_map_put,
    word_map_release,
    word_map_retain,
)
from fastevm.core.state.account cimport DIRTY_RESET, Account, Slot
from fastevm.core.state.world cimport World


cdef void destroy_mask(void* leaf) noexcept nogil:
    word_map_release((<MaskLeaf*>leaf).zeros)
    PyMem_RawFree(leaf)


MASK_MAP.key_size = 20
MASK_MAP.seed = process_seed()
MASK_MAP.destroy = destroy_mask


cdef const MaskLeaf* mask_of(const MapNode* masks, const Address* address) noexcept nogil:
    if masks == NULL:
        return NULL
    return <const MaskLeaf*>map_get(masks, &MASK_MAP, address.b)


cdef bint mask_hides(const MaskLeaf* mask, const Word* key) noexcept nogil:
    return mask != NULL and (mask.whole or word_map_get(mask.zeros, key) != NULL)


cdef bint has_zeroed(const Account* a) noexcept nogil:
    cdef size_t i
    if a.slot_mask == 0:
        return False
    for i in range(<size_t>a.slot_mask + 1):
        if a.slots[i] != NULL and a.slots[i].dirty and word_is_zero(&a.slots[i].current):
            return True
    return False


cdef bint put_zeros(MaskLeaf* mask, const Account* a) noexcept nogil:
    cdef const Slot* s
    cdef Word mark
    cdef size_t i
    word_set(&mark, 1)
    if a.slot_mask == 0:
        return True
    for i in range(<size_t>a.slot_mask + 1):
        s = a.slots[i]
        if s != NULL and s.dirty and word_is_zero(&s.current):
            if not word_map_put(&mask.zeros, &s.key, &mark):
                return False
    return True


cdef MapNode* mask_account(MapNode* masks, const Account* a, bint* failed) noexcept nogil:
    """Adds tombstones for the remote values that the account's changes replaced."""
    cdef const MaskLeaf* old = mask_of(masks, &a.address)
    cdef MaskLeaf* mask
    cdef bint whole = (
        not a.exists or a.storage_reset or not a.base_has_storage or (a.dirty & DIRTY_RESET) != 0
    )
    if old != NULL and old.whole or not whole and not has_zeroed(a):
        return masks
    mask = <MaskLeaf*>PyMem_RawCalloc(1, sizeof(MaskLeaf))
    if mask == NULL:
        failed[0] = True
        return masks
    mask.head.references = 1
    mask.address = a.address
    mask.whole = whole
    if not whole:
        mask.zeros = word_map_retain(old.zeros) if old != NULL else 0
        if not put_zeros(mask, a):
            destroy_mask(mask)
            failed[0] = True
            return masks
    return map_set(masks, &MASK_MAP, mask, failed)


cdef MapNode* mask_world(MapNode* masks, const World* w, bint* failed) noexcept nogil:
    cdef size_t i
    for i in range(w.account_count):
        if w.account_list[i].dirty:
            masks = mask_account(masks, w.account_list[i], failed)
            if failed[0]:
                break
    return masks
