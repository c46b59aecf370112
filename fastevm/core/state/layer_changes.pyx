"""Compares two layers: the addresses that differ, and the changes of a single account.

The layers may be any two states, for example before and after a reorganisation or a withdrawn
slice. Layers share the nodes that did not change, so the work grows with the number of changes
between them, not with the size of the state.
"""

from libc.string cimport memcpy

from fastevm.core.primitives.bytes_like cimport address_bytes
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.persistent_map cimport map_differences
from fastevm.core.primitives.word cimport Word, word_to_int
from fastevm.core.primitives.word_map cimport WordMap, word_map_differences
from fastevm.core.state.account_map cimport ACCOUNT_MAP, AccountLeaf
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.tombstones cimport MASK_MAP, MaskLeaf, mask_of

from fastevm.core.state.values import AccountChange


cdef bint collect_account(void* before, void* after, void* context) noexcept with gil:
    cdef const AccountLeaf* leaf = <const AccountLeaf*>(before if after == NULL else after)
    (<set>context).add(leaf.address.b[:20])
    return True


cdef bint collect_mask(void* before, void* after, void* context) noexcept with gil:
    cdef const MaskLeaf* leaf = <const MaskLeaf*>(before if after == NULL else after)
    (<set>context).add(leaf.address.b[:20])
    return True


cdef bint collect_key(const Word* key, void* context) noexcept with gil:
    (<set>context).add(word_to_int(key))
    return True


cdef WordMap zeros_of(Layer layer, bytes address) noexcept:
    """Returns the slots of a remote account that this layer sets to zero."""
    cdef Address key
    cdef const MaskLeaf* mask
    memcpy(key.b, <const char*>address, 20)
    mask = mask_of(layer.masks, &key)
    return 0 if mask == NULL else mask.zeros


def changed_addresses(before: Layer, after: Layer) -> set[bytes]:
    """Returns the addresses (20 bytes) of all accounts that may differ between two layers.

    The set may contain an account that was written with its old values.
    """
    cdef set found = set()
    map_differences(
        before.accounts, after.accounts, &ACCOUNT_MAP, collect_account, <void*>found
    )
    map_differences(before.masks, after.masks, &MASK_MAP, collect_mask, <void*>found)
    return found


def account_change(before: Layer, after: Layer, address: object) -> AccountChange | None:
    """Returns what changed in an account from ``before`` to ``after``; None if nothing did.

    A missing account has balance, nonce and slots 0. Above a remote state, slots that were never
    written locally are unknown, so the slots of a removed account are not reported.
    """
    cdef bytes key = address_bytes(address, "address")
    cdef const AccountLeaf* old = before.leaf(key)
    cdef const AccountLeaf* new = after.leaf(key)
    cdef set slots = set()
    cdef dict storage = {}
    word_map_differences(
        0 if old == NULL else old.storage, 0 if new == NULL else new.storage,
        collect_key, <void*>slots,
    )
    word_map_differences(
        zeros_of(before, key), zeros_of(after, key), collect_key, <void*>slots
    )
    for slot in sorted(slots):
        value = after.storage(key, slot)
        if value != before.storage(key, slot):
            storage[slot] = value
    balance, nonce = after.balance(key), after.nonce(key)
    if not storage and (balance, nonce) == (before.balance(key), before.nonce(key)):
        return None
    return AccountChange(balance=balance, nonce=nonce, storage=storage)
