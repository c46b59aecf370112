# Tombstones: remote values hidden by local changes, as a persistent map by address.
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.persistent_map cimport MapKind, MapLeaf, MapNode
from fastevm.core.primitives.word cimport Word
from fastevm.core.primitives.word_map cimport WordMap
from fastevm.core.state.world cimport World


# An account with a tombstone but without a leaf does not exist.
cdef struct MaskLeaf:
    MapLeaf head
    Address address           # key of the map, directly after the header
    bint whole                # hides all remote slots of the account
    WordMap zeros             # keys of slots set to zero; the values in this map are unused


cdef MapKind MASK_MAP

cdef const MaskLeaf* mask_of(const MapNode* masks, const Address* address) noexcept nogil
# Whether a slot that is not in the account's local storage has a tombstone, so that it is zero.
cdef bint mask_hides(const MaskLeaf* mask, const Word* key) noexcept nogil

# Returns `masks` with the tombstones of the world's changes. Takes over the reference to `masks`.
# Call it before `commit_world`, which clears the dirty marks.
cdef MapNode* mask_world(MapNode* masks, const World* w, bint* failed) noexcept nogil
